"""LLVM text to machine code: parse, optimize, emit an object, load it; objects are kept in the program cache."""

from __future__ import annotations

import ctypes
import weakref
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from eshkol.backends.llvm import elf, halves
from eshkol.backends.llvm.scalars import DIVISION, DIVISION_FUNCTION
from eshkol.errors import BackendError
from eshkol.runtime import linking
from eshkol.support.store import ProgramCache

CALLED_BY_VECTORS = "vector-function-abi-variant"  # functions for which LLVM's vectorizer writes calls


@cache
def llvm() -> Any:
    """The llvmlite binding, set up once; imported only when native code is wanted."""
    import llvmlite.binding as binding

    binding.initialize_all_targets()  # a level that this machine lacks can still be emitted, to be read
    binding.initialize_all_asmprinters()
    return binding


@dataclass(frozen=True)
class Target:
    """The machine to compile for: LLVM's names of triple, CPU and features, and how wide vectors should be."""

    triple: str
    cpu: str
    features: str
    vector_bits: int

    def machine(self, quick: bool = False) -> Any:
        target = llvm().Target.from_triple(self.triple)
        return target.create_target_machine(
            cpu=self.cpu, features=self.features, opt=0 if quick else 3, reloc="pic", codemodel="default"
        )

    def has(self, feature: str) -> bool:
        """Whether the machine has a feature, by LLVM's name for it."""
        return f"+{feature}" in self.features.split(",")

    @property
    def is_arm(self) -> bool:
        return self.triple.startswith(("aarch64", "arm64"))

    @property
    def interleave(self) -> int:
        """Rounds of a vector loop to have under way at once, where 32 vector registers hold them; 0: as LLVM likes.

        LLVM likes one where a round is long, and then waits for each result of an elementary function.
        """
        return 4 if self.is_arm or self.vector_bits > 256 else 0

    @property
    def shifts_bf16(self) -> bool:
        """Whether BF16 is widened by a shift of its bits, rather than as LLVM's type.

        On x86 LLVM would compute floors and bounds of widened BF16 in BF16, and call a function for each that a process
        need not have. On ARM its vectorizer fails an assertion in loops that take a maximum of shifted bits.
        """
        return not self.is_arm

    @property
    def attributes(self) -> str:
        return f'"prefer-vector-width"="{self.vector_bits}"' if self.vector_bits > 256 else ""


def _optimized(text: str, target: Target, quick: bool = False) -> tuple[Any, Any]:
    binding = llvm()
    if "half" in text and target.triple.startswith("x86"):
        text = f"{text}\n{halves.FUNCTIONS}\n"
    try:
        module = binding.parse_assembly(text)
        module.verify()
    except RuntimeError as error:  # a bug of ours: say so without a page of LLVM text
        raise BackendError(f"native code could not be generated: {str(error).splitlines()[0]}") from error
    machine = target.machine(quick)
    module.triple = target.triple
    module.data_layout = str(machine.target_data)
    options = binding.create_pipeline_tuning_options(speed_level=0 if quick else 2)
    options.loop_vectorization = options.loop_interleaving = not quick
    options.slp_vectorization = False  # loops are vectorized; it took a fifth of the time and made no workload faster
    builder = binding.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    if CALLED_BY_VECTORS in text:
        inliner = binding.create_new_module_pass_manager()
        inliner.add_always_inliner_pass()
        inliner.run(module, builder)
    return module, machine


def compile_object(text: str, target: Target, quick: bool = False) -> bytes:
    """Machine code of a module as an object file; `quick`: as written, in a tenth of the time."""
    module, machine = _optimized(text, target, quick)
    code = bytes(machine.emit_object(module))
    if DIVISION.encode() in code and DIVISION_FUNCTION not in text:  # LLVM has written a division of its own
        return compile_object(f"{text}\n{DIVISION_FUNCTION}\n", target, quick)
    return code


def assembly(text: str, target: Target) -> str:
    """Machine code of a module as assembler text, to be read."""
    module, machine = _optimized(text, target)
    return str(machine.emit_assembly(module))


def optimized_ir(text: str, target: Target) -> str:
    """The module after LLVM's optimizer, to be read."""
    return str(_optimized(text, target)[0])


class Code(Protocol):
    """A module that is compiled."""

    def address(self, name: str) -> int:
        """Where one of its functions begins."""
        ...


class Loaded:
    """An object in memory; `address` of its functions stays valid as long as this lives.

    ELF objects go through the linker of the runtime, which puts code and data side by side: LLVM's own gives them
    places that may be too far apart where much of the address space is taken, and then ends the process.
    """

    def __init__(self, code: bytes, target: Target) -> None:
        self._code: linking.LinkedCode | None = None
        self._addresses: dict[str, int] = {}
        if elf.is_elf(code):
            defined, lacking = elf.names_of(code)
            self._code = linking.LinkedCode(few=True)
            found = self._code.load(code, {name: _outside(name) for name in lacking}, defined)
            self._addresses = dict(zip(defined, found, strict=True))
            weakref.finalize(self, self._code.close).atexit = False  # threads may still run in it then
        else:
            binding = llvm()
            self._engine = binding.create_mcjit_compiler(binding.parse_assembly(""), target.machine())
            self._engine.add_object_file(binding.ObjectFileRef.from_data(code))
            self._engine.finalize_object()

    def address(self, name: str) -> int:
        return self._addresses[name] if self._code else int(self._engine.get_function_address(name))


@cache
def _outside(name: str) -> int:
    """Where a function is that LLVM calls by its name, in the libraries of this process or among LLVM's own."""
    with suppress(AttributeError):
        return ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value or 0
    found = llvm().address_of_symbol(name)
    if not found:
        raise BackendError(f"compiled code needs the function {name}, which is not there")
    return int(found)


def cached_object(
    cache: ProgramCache, parts: dict[str, str], text: str, target: Target, label: str, quick: bool = False
) -> bytes:
    """The object for a module from the cache, or compiled now and kept there."""
    version = ".".join(map(str, llvm().llvm_version_info))
    key = {**parts, "triple": target.triple, "cpu": target.cpu, "features": target.features, "llvm": version,
           "vector_bits": str(target.vector_bits), "quick": str(quick), "module": text}  # fmt: skip
    return cache.get_or_build(key, lambda: compile_object(text, target, quick), label)
