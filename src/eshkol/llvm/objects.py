"""LLVM text to machine code: parsed, verified, optimized, written as an object; the program cache keeps objects.

Comes in: the text of a module, the `Target` it is for and the `Pipeline` that it goes through. Goes out: the bytes of
an object, or, to be read by people, assembler and LLVM's text after its optimizer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from threading import Condition, get_ident
from typing import Any

from eshkol.errors import BackendError
from eshkol.llvm import builtins, passes
from eshkol.llvm.passes import KERNEL, Pipeline
from eshkol.llvm.targets import OPTIONS, SELECTING_QUICKLY, Target, llvm
from eshkol.support import observing
from eshkol.support.store import ProgramCache


def compile_object(text: str, target: Target, pipeline: Pipeline = KERNEL) -> bytes:
    """Machine code of a module as an object file."""
    with observing.timed(observing.COMPILE, "LLVM"), _optimized(text, target, pipeline) as (module, machine):
        code = bytes(_emitted(machine.emit_object, module))
    if pipeline.builtins and builtins.lacks_division(text, code):
        return compile_object(f"{text}\n{builtins.DIVISION_FUNCTION}\n", target, pipeline)
    return code


def cached_object(
    cache: ProgramCache,
    parts: Mapping[str, str],
    text: str,
    target: Target,
    label: str,
    pipeline: Pipeline = KERNEL,
    compiler: Callable[[str, Target, Pipeline], bytes] | None = None,
) -> bytes:
    """The object for a module from the cache, or compiled now and kept there. `parts` say in the key what it is for."""
    build = compile_object if compiler is None else compiler
    return cache.get_or_build(key_parts(parts, text, target, pipeline), lambda: build(text, target, pipeline), label)


def key_parts(parts: Mapping[str, str], text: str, target: Target, pipeline: Pipeline) -> dict[str, str]:
    """All that the object of a module is found by."""
    carried = f"{builtins.HALVES}\n{builtins.DIVISION_FUNCTION}" if pipeline.builtins else ""
    return {**parts, **target.key, "pipeline": repr(pipeline), "builtins": carried, "module": text}


def cached_assembly(
    cache: ProgramCache, parts: Mapping[str, str], text: str, target: Target, label: str, pipeline: Pipeline = KERNEL
) -> bytes:
    """Assembler text of a module from the cache, for machines whose driver is given text."""
    key = {**parts, **target.key, "pipeline": repr(pipeline), "form": "assembler", "module": text}
    return cache.get_or_build(key, lambda: assembly(text, target, pipeline).encode(), label)


def assembly(text: str, target: Target, pipeline: Pipeline = KERNEL) -> str:
    """Machine code of a module as assembler text, to be read."""
    with _optimized(text, target, pipeline) as (module, machine):
        return str(_emitted(machine.emit_assembly, module))


def optimized_ir(text: str, target: Target, pipeline: Pipeline = KERNEL) -> str:
    """The module after LLVM's optimizer, to be read."""
    with _optimized(text, target, pipeline) as (module, _):
        return str(module)


def joined(texts: Sequence[str]) -> str:
    """Several modules as one: what one of them declares, another may define."""
    with llvm().create_context() as context:
        with _in_short():
            whole = llvm().parse_assembly(texts[0], context)
        with whole:
            for text in texts[1:]:
                with _in_short():
                    whole.link_in(llvm().parse_assembly(text, context))
            return str(whole)


@contextmanager
def _optimized(text: str, target: Target, pipeline: Pipeline) -> Iterator[tuple[Any, Any]]:
    """A module and the machine that writes its code."""
    if pipeline.builtins:
        text = builtins.with_conversions(text, target)
    machine = _machine(target, pipeline)
    with llvm().create_context() as context:  # what the module interns goes with it
        with _in_short():
            module = llvm().parse_assembly(text, context)
        with module:  # which must go before its context, also where something is raised
            with _in_short():
                module.verify()
            module.triple, module.data_layout = target.triple, _layout(machine)
            passes.run(pipeline, module, text, machine)
            yield module, machine


@contextmanager
def _in_short() -> Iterator[None]:
    """Text that LLVM refuses is a bug of ours: say so without a page of LLVM text."""
    try:
        yield
    except RuntimeError as error:
        raise BackendError(f"native code could not be generated: {str(error).splitlines()[0]}") from error


def _machine(target: Target, pipeline: Pipeline) -> Any:
    """LLVM's machine, one for each thread: none of its parts expects to be in two at once."""
    return _made(target, pipeline.instructions, pipeline.quickly and (target.is_arm or target.is_x86), get_ident())


@cache
def _layout(machine: Any) -> str:
    """How data lies in memory, as LLVM says it."""
    return str(machine.target_data)


@cache
def _made(target: Target, level: int, quickly: bool, thread: int) -> Any:
    machine = target.machine(level)
    if quickly:
        _let_select_quickly(machine)
    return machine


# --- how instructions are selected ----------------------------------------------------------------
#
# LLVM has an option for it, of the whole process, at which it looks when a machine begins to emit a module. A machine
# that was once told to select quickly goes on to do so, whatever the option says later; no other does.

_emissions = Condition()
_under_way = 0  # emissions: while there are any, the option stays as it is


def _emitted(emit: Callable[[Any], Any], module: Any) -> Any:
    """What LLVM emits."""
    global _under_way
    with _emissions:
        _under_way += 1
    try:
        return emit(module)
    finally:
        with _emissions:
            _under_way -= 1
            _emissions.notify_all()


def _let_select_quickly(machine: Any) -> None:
    """Let a machine, and no other, choose instructions one by one: half the time for code as it is written."""
    with _emissions, llvm().create_context() as context, llvm().parse_assembly("", context) as module:
        _emissions.wait_for(lambda: not _under_way)
        module.triple, module.data_layout = machine.triple, str(machine.target_data)
        llvm().set_option("eshkol", SELECTING_QUICKLY)
        try:
            machine.emit_object(module)
        finally:
            for option in OPTIONS:
                llvm().set_option("eshkol", option)
