"""What LLVM does to a module before it becomes machine code: one named `Pipeline` for each kind of code.

Comes in: a verified module and LLVM's machine. Goes out: the same module, optimized. How long LLVM may take differs:
a kernel runs for long and is worth all of it, what is typed at a prompt runs once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from eshkol.llvm.targets import llvm
from eshkol.support import flags

CALLED_BY_VECTORS = "vector-function-abi-variant"  # functions for which LLVM's vectorizer writes calls
INLINED = "alwaysinline"  # functions that are put into their callers, whatever the level


@dataclass(frozen=True)
class Pipeline:
    """The passes over a module, and how much effort goes into choosing instructions for it."""

    name: str
    passes: int | tuple[str, ...]  # LLVM's level of -O, or single passes by llvmlite's names
    instructions: int  # LLVM's level for the generator of instructions
    builtins: bool = False  # whether functions that LLVM calls by itself come along
    quickly: bool = False  # whether instructions are chosen one by one, which calls as Scheme makes them do not bear

    @property
    def is_plain(self) -> bool:
        """Whether nothing is optimized but what the generator of instructions does."""
        return self.passes == 0


KERNEL = Pipeline("kernel", passes=2, instructions=3, builtins=True)
QUICK_KERNEL = Pipeline("quick kernel", passes=0, instructions=0, builtins=True, quickly=True)
# What the passes gain at a prompt, where every variable may be changed, is not worth their time; a good choice of
# registers is.
UNIT = Pipeline("unit", passes=2, instructions=2)  # of Scheme: programs and libraries
PROMPT_UNIT = Pipeline("unit at a prompt", passes=0, instructions=1)
SINGLE_UNIT = Pipeline("unit that runs at most once", passes=0, instructions=0)
# What pays in derivatives: registers for slots. All of -O2 takes many times as long and gains next to nothing; what is
# computed twice is found before, in `calculus/cfg.py`.
DERIVATIVE = Pipeline(
    "derivative", passes=("sroa", "simplify_cfg", "instruction_combine", "simplify_cfg"), instructions=2
)


def is_plain() -> bool:
    """Whether code is wanted as it is written: ESHKOL_OPTIMIZE=0 asks for it."""
    return flags.choice("ESHKOL_OPTIMIZE") is False


def for_kernels() -> Pipeline:
    """The pipeline for the lanes of a program, and for array instructions' own kernels."""
    return QUICK_KERNEL if is_plain() else KERNEL


def run(pipeline: Pipeline, module: Any, text: str, machine: Any) -> None:
    """Optimize a module, whose text is at hand to see what it calls."""
    if pipeline.is_plain and INLINED not in text:
        return  # there is nothing that LLVM would do
    # llvmlite never frees passes; those that optimize nothing may be used again, by the thread that the machine is of
    passes, builder = (_kept if pipeline.is_plain else _made)(pipeline, machine)
    passes.run(module, builder)
    if CALLED_BY_VECTORS in text:
        inliner = llvm().create_new_module_pass_manager()
        inliner.add_always_inliner_pass()
        inliner.run(module, builder)


def _made(pipeline: Pipeline, machine: Any) -> tuple[Any, Any]:
    """LLVM's passes, and the builder that they are run with."""
    level = pipeline.passes if isinstance(pipeline.passes, int) else 2
    options = llvm().create_pipeline_tuning_options(speed_level=level)
    # Loops become vectors. To look at straight-line code too took a fifth of the time and made no workload faster.
    options.slp_vectorization = False
    builder = llvm().create_pass_builder(machine, options)
    if isinstance(pipeline.passes, int):
        return builder.getModulePassManager(), builder
    passes = llvm().create_new_module_pass_manager()
    for name in pipeline.passes:
        getattr(passes, f"add_{name}_pass")()
    return passes, builder


_kept = cache(_made)
