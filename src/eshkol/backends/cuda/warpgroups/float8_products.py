"""Products of floats of 8 bits on Hopper's groups of warps: bytes, of which an instruction takes 32 terms at once.

Comes in: a `Float8Product`, and a `Tile`. Goes out: the kernel as PTX, and the tensor maps of its factors. It is the
kernel of `other_products.py`, whose sums are multiplied with a number that lies in memory, and may be rounded to 16
bits before they are stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from eshkol.atlas.types import Type
from eshkol.backends.cuda.warpgroups.other_products import OtherWriter
from eshkol.backends.cuda.warpgroups.products import Product, Tile
from eshkol.backends.cuda.warpgroups.ring import NAMES

FORMATS = {False: "e4m3", True: "e5m2"}  # by whether the exponent is the wider one


@dataclass(frozen=True)
class Float8Product:
    """A product of bytes, which formats they are in, the type of the result, and where the number lies."""

    product: Product
    wide: tuple[bool, bool]
    result: Type
    scale: tuple[int, int]  # the byte of the record that has its address, and so many bytes further


def product_kernel(f: Float8Product, tile: Tile, record: int, result: int) -> str:
    """The kernel's text, for a record of so many bytes, which ends with the maps and has C's address at this byte."""
    return _Float8Writer(f, tile, record, result).text()


class _Float8Writer(OtherWriter):
    def __init__(self, f: Float8Product, tile: Tile, record: int, result: int) -> None:
        super().__init__(f.product, tile, 2, record, result)
        self.f, self.size = f, f.result.size_bytes
        one, other = (FORMATS[wide] for wide in f.wide)
        self.numbers = replace(self.numbers, types=f"f32.{one}.{other}")

    def store(self, number: str, group: str, me: str, sums: Sequence[Sequence[str]]) -> None:
        k = self.k
        at = k.op("cvta.to.global.u64", k.word(self.f.scale[0]), kind="b64")
        at = k.op("add.u64", at, self.f.scale[1], kind="b64")
        self.factor = k.op("ld.global.f32", f"[{at}]", kind="f32")
        super().store(number, group, me, sums)

    def _store_two(self, target: str, place: str, extent: int, sums: Sequence[str]) -> None:
        k = self.k
        sums = [k.op("mul.f32", x, self.factor, kind="f32") for x in sums]
        if self.f.result is Type.F32:
            super()._store_two(target, place, extent, sums)
            return
        name, first = NAMES[self.f.result], k.less(place, extent)
        if extent % 2 == 0 and self.p.c.distance % 2 == 0:
            packed = k.op(f"cvt.rn.{name}x2.f32", sums[1], sums[0])
            k.do("st.global.b32", f"[{target}]", packed, when=first)
            return
        for further, value in enumerate(sums):
            inside = first if further == 0 else k.less(k.add(place, 1), extent)
            rounded = k.op(f"cvt.rn.{name}.f32", value, kind="b16")
            k.do("st.global.b16", f"[{target}+{2 * further}]", rounded, when=inside)
