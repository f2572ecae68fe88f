"""Places whose mutants no test of answers can judge, each with the reason; the table reports how many they are.

A place belongs here if a change to it makes programs slower or larger and never wrong, if only people read what it
makes, or if it is itself input of the tests. Whatever could change an answer does not belong here, however hard it is
to test: that is what survivors are for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from mutation.mutants import Mutant


@dataclass(frozen=True)
class Excluded:
    """Mutants of these names in these modules: constants or keywords, or functions with all that is in them."""

    modules: str  # a pattern
    reason: str
    names: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    operator: str = ""  # only mutants of this kind

    def covers(self, mutant: Mutant) -> bool:
        if not fnmatchcase(mutant.module, self.modules) or self.operator not in ("", mutant.operator):
            return False
        if any(mutant.function == f or mutant.function.startswith(f"{f}.") for f in self.functions):
            return True
        # A comparison with a threshold is as much a matter of speed as the threshold is.
        return mutant.name in self.names or any(name in self.names for name in mutant.compared)


_SIZES = "a size from which on another way is faster: both ways give the same"
_BOUND = "how much is kept, or how far is looked: more or less of it changes no answer"

EXCLUDED = (
    # ---- what the code asserts of itself
    Excluded("eshkol.*", "`zip(strict=)` is an assert: what it forbids does not happen", names=("strict",)),
    Excluded("eshkol.*", "`dataclass(slots=)`: how much memory an object takes", names=("slots",)),
    Excluded("eshkol.ops.*", "further names of an op, and the kinds of dtype it takes: their order means nothing",
             names=("aliases", "scheme", "procedures", "dtypes"), operator="swapped parts"),
    # ---- inputs of the tests, and what only people read
    Excluded("eshkol.ops.*", "inputs that the tests of the op table take, and how exact they ask it to be",
             names=("samples", "tolerance", "kinks", "options", "_ROUNDED")),
    *(Excluded(f"eshkol.ops.{module}", "makes inputs of the tests", functions=functions) for module, functions in (
        ("activations", ("_off",)), ("decompositions", ("_spread",)), ("indexing", ("at",)), ("lookup", ("_sample",)),
        ("losses", ("_samples", "_labels")), ("matrices", ("noise", "conditioned", "definite", "triangle", "both")),
        ("pooling", ("shuffled", "_places")), ("reductions", ("_off_zero",)), ("row", ("sample", "Draw", "Sample")),
        ("select", ("_at",)), ("sorting", ("distinct", "rising")), ("sparse", ("_pointers",)),
    )),
    Excluded("eshkol.ops.lookup", "inputs of the tests", names=("_PLACES",)),
    Excluded("eshkol.ops.*", "headings and other names in the documentation", names=("GROUP", "doc")),
    Excluded("eshkol.ops.docs", "writes a page of the documentation",
             functions=("signature", "derivative", "ops_page")),
    Excluded("eshkol.schedule.plan.show", "plans as people read them", functions=("shown_plan", "_lines")),
    Excluded("eshkol.schedule.plan.report", "a report for people", names=("SHOWN",),
             functions=("_line", "_bytes")),
    Excluded("eshkol.schedule.kernels.kernel", "programs as people read them", functions=("shown",)),
    Excluded("eshkol.schedule.plan.together", "what is done together, as people read it", functions=("_described",)),
    Excluded("eshkol.calculus.*", "why there is no compiled derivative, in words", functions=("said", "_said")),
    Excluded("eshkol.calculus.fast", "the same, and of mistakes",
             functions=("FastPrograms._warn", "FastPrograms._say")),
    Excluded("eshkol.schedule.check.smallest", "graphs as people read them",
             functions=("shown", "_shown_nodes", "_shown_attributes", "_shown_array")),
    # ---- estimates and thresholds of the tensor compiler
    Excluded("eshkol.schedule.kernels.costs", "estimates of cost: they choose among ways that give the same",
             names=("TRANSCENDENTAL", "EXPANDED", "DEAR"), functions=("weight", "dear", "_weighed", "_counted")),
    *(Excluded(f"eshkol.schedule.kernels.{module}", "estimates of cost: of tiles that give the same, one is chosen",
               names=names) for module, names in (
        ("tiling", ("FULL", "LOAD", "BEGIN", "FETCH", "PART", "LAUNCH")),
        ("matrix_tiling", ("BUSY", "LOAD", "HIDDEN", "ROUND", "BEGIN", "PART", "LAUNCH")),
        ("weight_products", ("TILES", "STORED")),
    )),
    Excluded("eshkol.schedule.*", _SIZES,
             names=("SHORTEST", "MOST_CODE", "MOST_INPUTS", "CHEAP",
                    "LONG_ROW", "FEW", "FEW_TAKES", "UNROLLED", "MANY", "AT_ONCE",
                    "MOST_ROWS", "SHORT", "COUNTED", "LARGE", "STRETCH", "READ_FIRST",
                    "MOST_STRETCHES")),
    Excluded("eshkol.schedule.rewrite.arrange", _SIZES,
             names=("LONG", "LEAST", "ROOM", "RESULTS", "MOST_PARTS", "WORTH", "SMALL")),
    Excluded("eshkol.schedule.rewrite.turned", _SIZES, names=("LONGEST", "NARROWEST", "LEAST")),
    Excluded("eshkol.schedule.kernels.short_rows", _SIZES, names=("LEAST",)),
    Excluded("eshkol.schedule.kernels.scanning", _SIZES, names=("WIDEST", "NARROWEST")),
    Excluded("eshkol.schedule.kernels.parts", _SIZES, names=("MANY_ROWS", "SEQUENTIAL", "MOST_TERMS")),
    Excluded("eshkol.schedule.rewrite.orders", _SIZES, names=("SHORT_SEARCH", "SHORT_ROW")),
    Excluded("eshkol.schedule.kernels.transforms", _SIZES, names=("LONG", "LONGEST_SIGNAL", "LONGEST_ALONE")),
    Excluded("eshkol.schedule.kernels.transforms", "estimates of cost: of lengths that all are right, one is chosen",
             names=("COSTS", "ODD_PARTS", "wanted", "best")),
    Excluded("eshkol.schedule.*", "terms that are added one after another: rounding within every tolerance",
             names=("BLOCK",)),
    Excluded("eshkol.schedule.*", _BOUND,
             names=("KEPT", "FUNCTIONS_KEPT", "PLACEHOLDERS_KEPT", "KEPT_BYTES", "SPARES", "SPARE_SIZES", "DEEP",
                    "SOURCES", "SIBLINGS", "LOOKED_THROUGH", "ROUNDS", "WINDOW", "MOST")),
    Excluded("eshkol.schedule.run.resident", "compared with a threshold alone, that of what is worth counting",
             functions=("Resident.nbytes",)),
    Excluded("eshkol.schedule.kernels.code", "registers that are left to the backends, with room to spare",
             names=("USABLE",)),
    Excluded("eshkol.graph.node", _BOUND, names=("CONSTANTS_KEPT",)),
    Excluded("eshkol.ops.indexing", _SIZES, names=("WIDE", "STRETCH")),
    Excluded("eshkol.ops.contraction", _SIZES, names=("BATCH_AXES",)),
    # ---- those of compiled derivatives
    Excluded("eshkol.calculus.*", _SIZES,
             names=("INLINED", "LARGEST_CUT", "MOST_FORWARD", "MOST_LANES", "MANY", "CHEAP_MATH", "CHEAP",
                    "LARGEST")),
    Excluded("eshkol.calculus.*", _BOUND,
             names=("SLOTS", "MOST_ITEMS", "DEEPEST", "MOST_KEPT", "MOST_ATTEMPTS", "MOST_TURNS", "MOST_UNROLLED",
                    "MOST_INSTRUCTIONS")),
    Excluded("eshkol.llvm.passes", "which optimizations LLVM makes"),
    Excluded("eshkol.calculus.header", "how long the lines of a C file are", names=("WIDTH",)),
    Excluded("eshkol.calculus.*", "`dataclass(frozen=)` is an assert: nothing changes what it forbids to change",
             names=("frozen",)),
    Excluded("eshkol.calculus.forward", "doubles in a register: any number gives the same", names=("WIDTH",)),
)  # fmt: skip


def reason(mutant: Mutant, entries: Iterable[Excluded] = EXCLUDED) -> str | None:
    """Why a mutant is not counted, or None."""
    return next((entry.reason for entry in entries if entry.covers(mutant)), None)
