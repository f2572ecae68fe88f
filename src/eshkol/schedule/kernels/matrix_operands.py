"""How operands of products in fragments lie in memory: as they are, or copied for the purpose by a kernel of their own.

Comes in: a view of an operand (`products.py`). Goes out: a `Layout`, which tells `matrix_products.py` where rows of
whole chunks of 16 bytes begin; and the kernel that makes them, where they do not lie so: zeros follow each row.

Where products of float32 need not be exact, and the machine does not round numbers itself, they are copied as bfloat16.
Where that is all that is asked for ("medium") each number is rounded. Where more is ("high") it is the sum of two,
x = h + l, and sums are three times as long, of x and y:

    h h' + h l' + l h'        terms of the left one: h h l; of the right one: h' l' h'

What is left out, l l', is about 2⁻¹⁸ of a product. Products with infinite numbers are NaN then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from eshkol.atlas.machines import MachineDescription, Precision
from eshkol.atlas.program import LaunchConfig
from eshkol.graph.node import Node
from eshkol.ops import dtypes
from eshkol.ops.dtypes import DType
from eshkol.ops.shapes import count
from eshkol.schedule.kernels.block_factors import at_most, digits
from eshkol.schedule.kernels.block_products import needed
from eshkol.schedule.kernels.emit import Emitter
from eshkol.schedule.kernels.kernel import Kernel, shown
from eshkol.schedule.kernels.products import View
from eshkol.schedule.kernels.reads import Read, Write
from eshkol.schedule.kernels.scalars import TYPES, Scalar

CHUNK_BYTES = 16
CHUNK = 8  # elements of 16 bits
PIECES = {Precision.HIGH: 3, Precision.MEDIUM: 1}  # of each term, for products of float32
LOWER = (2, 1)  # the piece of a term of the left and of the right factor that is the lower half of the number


def rounds(dtype: DType, target: MachineDescription) -> bool:
    """Whether the machine itself rounds numbers of a dtype that it multiplies: float32, where less is asked for."""
    less = target.float32_products is not Precision.HIGHEST
    return dtype is dtypes.float32 and less and target.matrices is not None and target.matrices.whole


def read_as(dtype: DType, target: MachineDescription) -> tuple[DType, int] | None:
    """In which dtype a machine multiplies matrices of a dtype, and how many terms one becomes; None: it does not."""
    assert target.matrices is not None
    if dtype is dtypes.float32:
        if rounds(dtype, target):
            return dtype, 1  # as it is brought
        count = PIECES.get(target.float32_products)
        return None if count is None else (dtypes.bfloat16, count)
    return (dtype, 1) if TYPES.get(dtype) in target.matrices.types else None


def suits(view: View, chunk: int = CHUNK) -> bool:
    """Whether matrices can be read as they are seen: rows of whole chunks, which begin where chunks do."""
    laid = view.matrix()
    if laid is None:
        return False
    places = (laid[0], view.shape[-2 if laid[1] else -1], view.offset, *view.strides[:-2])
    return all(n >= 0 and n % chunk == 0 for n in places)


class Laid(Protocol):
    """How a factor is brought to shared memory: in which dtype, whether terms of a line lie side by side, how many."""

    @property
    def dtype(self) -> DType: ...

    @property
    def deep(self) -> bool: ...

    @property
    def terms(self) -> int: ...

    @property
    def copied(self) -> bool:
        """Whether it lies in memory of its own, of so many elements (`size`)."""

    @property
    def size(self) -> int: ...


class LaidRows(Laid, Protocol):
    """One that is rows in memory, so many chunks apart, each of so many."""

    @property
    def rows(self) -> int: ...

    @property
    def stride(self) -> int: ...

    @property
    def chunks(self) -> int: ...


class Layout:
    """How the rows of an operand lie in memory: of one that is transposed there, its columns are the rows."""

    def __init__(
        self, view: View, steps: Sequence[int], dtype: DType, into: DType, split: int, *, left: bool, chunk: int
    ) -> None:  # fmt: skip
        """Of numbers of a dtype, which are read as those of another, each as so many, in chunks of so many."""
        laid = view.matrix()
        assert laid is not None
        distance, turned = laid
        self.deep = turned != left  # whether terms of a line lie side by side
        self.given = view.shape[:-3:-1] if turned else view.shape[-2:]  # rows and columns
        self.left, self.split, self.matrices = left, split, count(view.shape[:-2])
        self.dtype, self.chunk = into, chunk
        self.copied = dtype is not into or not suits(view, self.chunk)
        rows, columns = self.given
        if self.copied:
            # It is a whole tensor as it is, and so is the copy. Each piece of the terms is of whole chunks.
            rows, columns = (
                (rows, self._whole(columns)) if self.deep else (self._whole(rows) if split > 1 else rows, columns)
            )
            self.piece = columns if self.deep else rows
            rows, columns = (rows, split * columns) if self.deep else (split * rows, columns)
            self.stride, self.offset = self._whole(columns) // self.chunk, 0
            self.steps = [step // count(self.given) * rows * self.stride for step in steps]
        else:
            self.stride, self.offset = distance // self.chunk, view.offset // self.chunk
            self.steps = [step // self.chunk for step in steps]
        self.rows, self.columns = rows, columns
        self.chunks = -(-columns // self.chunk)  # of a row

    def _whole(self, elements: int) -> int:
        """So many, or as many more as make whole chunks."""
        return -(-elements // self.chunk) * self.chunk

    @property
    def terms(self) -> int:
        return self.columns if self.deep else self.rows

    @property
    def size(self) -> int:
        """Elements of the copy."""
        return self.chunk * self.matrices * self.rows * self.stride

    def start(self, e: Emitter, places: Sequence[Scalar]) -> Scalar:
        """Where the matrix begins that stands at these places of the batch, in chunks."""
        found = e.number(self.offset)
        for place, step in zip(places, self.steps, strict=True):
            if step:
                found = found + place * step
        return found


def copied(k: int) -> str:
    """The memory of the copy of an operand."""
    return f"copied{k}"


def copying_kernel(node: Node, k: int, layout: Layout, target: MachineDescription) -> Kernel:
    """The kernel that copies an operand: a lane for each number of a piece, which it writes in all of them."""
    x, (rows, columns) = node.inputs[k], layout.given
    width = layout.stride * layout.chunk
    high, wide = (rows, layout.piece) if layout.deep else (layout.piece, width)
    lanes = layout.matrices * high * wide
    e = Emitter((lanes,))
    read, write = Read(e, f"x{k}", x.shape, x.dtype), Write(e, copied(k), (layout.size,), layout.dtype)
    which, row, column = digits(e, e.lane, (layout.matrices, high, wide))
    there = which * (rows * columns) + at_most(e, row, rows - 1) * columns + at_most(e, column, columns - 1)
    inside = e.both(e.compare("LT", row, rows), e.compare("LT", column, columns))
    value = e.select(inside, read.load(there), 0)
    upper = e.convert(value, layout.dtype)
    lower = _rest(e, value, upper) if layout.split > 1 else upper
    at = (which * layout.rows + row) * width + column
    for piece in range(layout.split):
        further = piece * layout.piece * (1 if layout.deep else width)
        write.store(at, lower if layout.split > 1 and piece == LOWER[k] else upper, further)
    program = shown(e.finish(f"{node.op.name}_copied", [read], [write], lanes))
    launch = LaunchConfig.linear(lanes, target.block)
    return Kernel(program, launch, None, ("out",), ((f"x{k}", k),), (), (needed(write),))


def _rest(e: Emitter, value: Scalar, upper: Scalar) -> Scalar:
    """What rounding has left over of a number; 0 of one that is infinite."""
    rest = value - e.convert(upper, value.dtype)
    return e.convert(e.select(e.compare("EQ", rest, rest), rest, 0), upper.dtype)
