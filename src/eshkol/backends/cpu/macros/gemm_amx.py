"""Intel's matrix extension: an inner loop whose sums are tile registers.

A micro-tile is 32×32 sums in four tile registers of 16×16; a step multiplies two tiles of A (16 rows of 16 units) with
two of B (16 unit rows of 16 columns). Operands are packed as for every style of grouped units (`gemm_units`). The
system wants to be asked once before a process uses tile registers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from eshkol.atlas.types import Type
from eshkol.backends.cpu.macros.gemm_units import Micro, Style
from eshkol.backends.cpu.macros.kit import Array, Kernel, Operand, Value
from eshkol.llvm.targets import Target
from eshkol.llvm.targets import tiles_permitted as permitted

PANEL_BYTES = 128 << 10  # of B: tiles are multiplied so fast that the second cache does as well as the first
EDGE = 16  # rows of a tile, and columns (of 4 bytes)
PALETTE_AT, ROW_BYTES_AT, ROWS_AT = 0, 16, 48  # bytes of the configuration: palette, then per register u16 and u8

# What two tiles are multiplied by, for elements of a type.
INSTRUCTIONS = {Type.BF16: "llvm.x86.tdpbf16ps", Type.I8: "llvm.x86.tdpbssd"}
FEATURES = {Type.BF16: "amx-bf16", Type.I8: "amx-int8"}


def available(element: Type, target: Target) -> bool:
    """Whether machine and system multiply tiles of a type."""
    return target.has("amx-tile") and target.has(FEATURES[element]) and permitted()


def amx_style(element: Type, target: Target) -> Style | None:
    """Products of tiles of BF16 or I8; None where the machine or the system does not have them."""
    if not available(element, target):
        return None
    total = Type.F32 if element is Type.BF16 else Type.I32
    group = 4 // element.size_bytes
    return Style(
        f"amx_{element}".lower(), element, group, Type.I32, total, _no_step, 2 * EDGE, 2, EDGE, multiple=EDGE,
        panel_bytes=PANEL_BYTES, packs_own=True, inner=inner, setup=configure, teardown=release,
    )  # fmt: skip


def _no_step(k: Kernel, sums: Value, b: Value, a: Value) -> Value:
    raise AssertionError("tiles are not multiplied vector by vector")


def configure(k: Kernel) -> None:
    """All eight tile registers: 16 rows of 64 bytes."""
    memory = k.local(Type.U8, 64)
    content = bytearray(64)
    content[PALETTE_AT] = 1
    for register in range(8):
        content[ROW_BYTES_AT + 2 * register] = 4 * EDGE
        content[ROWS_AT + register] = EDGE
    for place, byte in enumerate(content):
        memory[place] = k.const(Type.U8, byte)
    k.call("void", "llvm.x86.ldtilecfg", ("ptr", memory.pointer))


def release(k: Kernel) -> None:
    k.call("void", "llvm.x86.tilerelease")


def inner(k: Kernel, style: Style, micro: Micro) -> None:
    """The sums of a micro-tile."""
    row_bytes, unit_row_bytes = (str(stride * 4) for stride in (micro.a_row, micro.b_row))
    with sums(k, micro.sums, style.columns, micro.later), k.loop(0, micro.length, EDGE, plain=True) as at:
        a, b = micro.a.at(at), micro.b.at(micro.b_row * at)
        multiply(k, style.element, (a, micro.a_row * EDGE, row_bytes), (b, EDGE, unit_row_bytes))


@contextmanager
def sums(k: Kernel, memory: Array, width: int, later: str) -> Iterator[None]:
    """Sums in tile registers 0 to 3, from zero or from what is there, and to memory at the end."""
    quarters = [(2 * i + j, memory.at(i * EDGE * width + j * EDGE)) for i in (0, 1) for j in (0, 1)]
    for register, _ in quarters:
        _tile(k, "tilezero", register)
    with k.when(later):
        for register, place in quarters:
            _tile(k, "tileloadd64", register, place, str(4 * width))
    yield
    for register, place in quarters:
        _tile(k, "tilestored64", register, place, str(4 * width))


Halves = tuple[Array, Operand, str]  # the first of two tiles, elements from it to the second, bytes between rows


def multiply(k: Kernel, element: Type, a: Halves | None, b: Halves) -> None:
    """Two tiles of A (those of the last time if there are none), in registers 4 and 5, times two of B, in 6 and 7."""
    for half in (0, 1):
        for first, (tile, apart, row_bytes) in ((4, a), (6, b)) if a else ((6, b),):
            _tile(k, "tileloadd64", first + half, tile.at(apart) if half else tile, row_bytes)
    for register in range(4):
        factors = [("i8", str(n)) for n in (register, 4 + register // 2, 6 + register % 2)]
        k.call("void", INSTRUCTIONS[element], *factors)


def _tile(k: Kernel, name: str, register: int, memory: Array | None = None, stride: str = "") -> None:
    place = [] if memory is None else [("ptr", memory.pointer), ("i64", stride)]
    k.call("void", f"llvm.x86.{name}", ("i8", str(register)), *place)
