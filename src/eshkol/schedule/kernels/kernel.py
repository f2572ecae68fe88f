"""Kernels: programs ready to be launched, and what is said about nodes before there is one.

Everything that makes kernels stands above this: single nodes (`lower.py`) and groups (`fused.py`). Comes in: nodes and
rows. Goes out: `Kernel`s, which of a row's lowerings fits, and words for messages.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from eshkol.atlas.machines import MachineDescription
from eshkol.atlas.operands import BufferOffset
from eshkol.atlas.program import LaunchConfig, Program
from eshkol.atlas.types import Type
from eshkol.errors import TensorError
from eshkol.graph.node import Node
from eshkol.ops.dtypes import DType
from eshkol.ops.movement import reshape
from eshkol.ops.row import Choice, Host, Lowering, Macro, Nested, Parts, Pull, Shape, Simple
from eshkol.ops.shapes import count
from eshkol.ops.structural import CONST, MARK, NUMBERS, PAIRS, TO
from eshkol.schedule.kernels.reads import number_names
from eshkol.support import flags

ONE_LANE = LaunchConfig.linear(1)

HOST: Literal["host"] = "host"
ALIAS: Literal["alias"] = "alias"
ALIASES = frozenset({MARK, TO, PAIRS, NUMBERS, reshape})  # ops that are their input under another shape


@dataclass(frozen=True, slots=True)
class Kernel:
    """A program ready to be launched, with the parameters that each launch fills."""

    program: Program
    launch: LaunchConfig | None  # None: there is nothing to compute
    lanes: int | None  # the value of the parameter n, if it has one
    outs: tuple[str, ...]
    buffers: tuple[tuple[str, int], ...]  # parameter and the input that it is
    numbers: tuple[tuple[str, int], ...]  # likewise, of inputs that are constants
    # Parameter, dtype and count of memory that is needed meanwhile; kernels of one group share what bears one name.
    scratch: tuple[tuple[str, DType, int], ...] = ()
    extents: tuple[tuple[str, int], ...] = ()  # parameters that tell extents, and their values
    onto: bool = False  # whether it changes its output, which must be a copy of its first input before
    copies: bool = False  # whether its output is its one input as it is


Lowered = Kernel | tuple[Kernel, ...] | Nested | Literal["host", "alias"]  # several are run one after another


@dataclass(frozen=True, slots=True)
class View:
    """A buffer as the code of a `Macro` sees it."""

    name: str
    shape: Shape
    dtype: DType
    ty: Type

    @property
    def address(self) -> BufferOffset:
        return BufferOffset(self.name)

    @property
    def size(self) -> int:
        return count(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)


def chosen(how: Lowering | None, attrs: Any, inputs: Sequence[Any], *, arrays: bool = True) -> Simple:
    """The lowering that fits; one without array instructions, if there is one and they are not wanted."""
    while isinstance(how, Choice):
        fits = how.fits(attrs, *inputs) and (arrays or not isinstance(how.then, Macro))
        how = how.then if fits else how.otherwise
    if how is None:
        raise TensorError("the op has no lowering")
    return how


def is_complex(node: Node) -> bool:
    """Whether a node gives complex numbers, or takes some."""
    results = (node.dtype,) if node.outs is None else tuple(out.dtype for out in node.outs)
    return any(dtype.is_complex for dtype in (*results, *(x.dtype for x in node.inputs)))


def lowering(node: Node, *, arrays: bool = True) -> Simple:
    """What computes a node, as its row says: of complex numbers, what it says of these."""
    if is_complex(node):
        how = node.op.of_complex
        if isinstance(how, Pull):
            return how
        if not how:
            return Host()
    return chosen(node.op.lower, node.attrs, node.inputs, arrays=arrays)


def bound(program: Program, inputs: Sequence[Node]) -> tuple[tuple[tuple[str, int], ...], tuple[tuple[str, int], ...]]:
    """Which parameters of a program are which inputs: those that lie in buffers, and those that are numbers.

    Input k is the parameter `x{k}`, where the program reads it; a complex number is two.
    """
    buffers: list[tuple[str, int]] = []
    numbers: list[tuple[str, int]] = []
    for k, x in enumerate(inputs):
        if x.op is CONST:
            numbers += [(name, k) for name in number_names(f"x{k}", x.dtype) if name in program.param]
        elif f"x{k}" in program.param:
            buffers.append((f"x{k}", k))
    return tuple(buffers), tuple(numbers)


def composed(node: Node) -> Node:
    """What a node is composed of, where its row says so."""
    how = node.op.lower
    assert isinstance(how, Parts)
    found: Node = how.code(node.attrs, *node.inputs)
    return found


def core_block(target: MachineDescription, work: int) -> int:
    """Lanes of so much work each that make a block for a core."""
    return max(1, min(target.block, target.lane_work // work))


def shown(program: Program) -> Program:
    """The program itself, printed if that is asked for."""
    if flags.dumps("lower"):
        print(program, file=sys.stderr)
    return program


def described(node: Node) -> str:
    """An op with its operands, for messages; of what was made of another op, that one."""
    asked: str | None = getattr(node.attrs, "asked", None)
    if asked is not None:
        return asked
    shown = ", ".join("several" if x.outs is not None else f"{x.dtype}{list(x.shape)}" for x in node.inputs)
    return f"{node.op.name}({shown})"
