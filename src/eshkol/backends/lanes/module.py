"""What a module with lanes has besides their functions, whatever machine runs them: helpers, tables, metadata.

Comes in: the functions of lanes. Goes out: text that they refer to. The numbers of metadata are handed out here: those
up to 9 stand in every module, `kernels/macro.py` of the CPU has the nineties, and what is told about single loops comes
behind 100.
"""

from __future__ import annotations

from eshkol.atlas.classes import CLASSES, MAX_NEIGHBOURS, neighbours
from eshkol.backends.lanes.layout import SITE_BITS
from eshkol.backends.lanes.wide import functions as products
from eshkol.llvm.builtins import DIVISION, DIVISION_FUNCTION

INVARIANT = ", !invariant.load !0"  # of words that no kernel writes
SELDOM = ", !prof !1"  # of a branch that is hardly ever taken
SCALAR_LOOP = ", !llvm.loop !4"  # neither vectorized nor unrolled, which takes LLVM long
OUTER_LOOP = ", !llvm.loop !7"  # around other loops: unrolled, it would be many copies of them
VECTORIZED_NEVER, UNROLLED_NEVER = "!5", "!6"  # parts of a loop's metadata
METADATA = """\
!0 = !{}
!1 = !{!"branch_weights", i32 1, i32 1000000}
!4 = distinct !{!4, !5, !6}
!5 = !{!"llvm.loop.vectorize.enable", i1 false}
!6 = !{!"llvm.loop.unroll.disable"}
!7 = distinct !{!7, !6}"""
FAULT_FUNCTION = f"""\
define internal void @fault(ptr %args, i64 %gid, i64 %site) cold noinline nounwind {{
  %high = shl i64 %gid, {SITE_BITS}
  %code = or i64 %high, %site
  %old = atomicrmw umin ptr %args, i64 %code monotonic
  ret void
}}"""


def helpers(body: str) -> list[str]:
    """The table and the functions that the functions of lanes refer to."""
    return [
        *([neighbour_table()] if "@neighbours" in body else []),
        FAULT_FUNCTION,
        *([DIVISION_FUNCTION] if DIVISION in body else []),
        *products(body),
    ]


def neighbour_table() -> str:
    """The neighbours of every class as a constant, -1 where a class has no such neighbour."""
    entries = []
    for cls in range(CLASSES):
        around = [*neighbours(cls), *[-1] * MAX_NEIGHBOURS][:MAX_NEIGHBOURS]
        entries += [f"i64 {n}" for n in around]
    return f"@neighbours = internal constant [{len(entries)} x i64] [{', '.join(entries)}]"
