"""LLVM text to WebAssembly: a module that engines load, with every function that LLVM would look for elsewhere.

Comes in: the text of a module, and whether the engine's fused products are exact. Goes out: the bytes of a module
without data of its own, and the data, to be put wherever `__memory_base` says.

LLVM's optimizer works as for any machine with vectors of 128 bits. Only then is replaced what the machine does not
have. Exact products with sums (`llvm.fma`) become the engine's relaxed ones where these are known to round once, else
functions that do; extremes that prefer numbers to NaN become a choice. So loops with them are vectors all the same.
What the generator of instructions then still calls (integers of 128 bits, F16) comes along: see `wasm_functions.py`.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from eshkol.errors import BackendError
from eshkol.llvm import objects, wasm_functions
from eshkol.llvm.passes import KERNEL, Pipeline
from eshkol.llvm.targets import WASM_TRIPLE, Target
from eshkol.llvm.wasm_objects import WasmCode, lacking, linked
from eshkol.support.keys import files_key
from eshkol.support.store import ProgramCache

FEATURES = "+simd128,+bulk-memory,+bulk-memory-opt,+mutable-globals,+nontrapping-fptoint,+sign-ext"
RELAXED = "relaxed-simd"
VECTOR_BITS = 128
# What is left to do behind the optimizer: functions are put into their callers, and instructions chosen.
AFTER = Pipeline("webassembly", passes=0, instructions=3)
_NAMES = "fma|" + "|".join(wasm_functions.EXTREMES)
_LACKING = re.compile(rf"@llvm\.({_NAMES})\.((?:v(\d+))?f(32|64))\(")
_DECLARED = re.compile(rf"^declare .*@llvm\.(?:{_NAMES})\.\w+\(.*$", re.MULTILINE)
_HALVES = re.compile(r"^  (%[\w.]+) = fcmp ((?:\w+ )+)<(\d+) x half> (%[\w.]+), (.+)$", re.MULTILINE)
_KEPT = re.compile(r"^@llvm\.(?:compiler\.)?used = .*$", re.MULTILINE)  # for the optimizer; it takes addresses


def target(*, fused: bool = False) -> Target:
    """LLVM's target of engines with vectors; `fused`: whose relaxed products are rounded once."""
    return Target(WASM_TRIPLE, "generic", f"{FEATURES},+{RELAXED}" if fused else FEATURES, VECTOR_BITS)


def optimized(text: str, for_target: Target, pipeline: Pipeline = KERNEL) -> str:
    """The module after LLVM's optimizer, with exact products as the engine has them."""
    found = _HALVES.sub(_compared, _KEPT.sub("", objects.optimized_ir(text, for_target, pipeline)))
    used = sorted({(name, int(lanes or 1), int(bits)) for name, _, lanes, bits in _LACKING.findall(found)})
    if not used:
        return found
    found = _LACKING.sub(r"@eshkol.\1.\2(", _DECLARED.sub("", found))
    products = [(lanes, bits) for name, lanes, bits in used if name == "fma"]
    parts = wasm_functions.fused_products(products, relaxed=for_target.has(RELAXED)) if products else []
    parts += [wasm_functions.extreme(name, lanes, bits) for name, lanes, bits in used if name != "fma"]
    return "\n\n".join([found, *parts]) + "\n"


def _compared(found: re.Match[str]) -> str:
    """A comparison of vectors of F16 as one of F32: on those, choosing instructions does not end (LLVM 22)."""
    result, how, lanes, *operands = found.groups()
    halves, floats = f"<{lanes} x half>", f"<{lanes} x float>"
    wide = [f"%wide{k}.{result[1:]}" for k in range(2)]
    lines = [f"  {w} = fpext {halves} {x} to {floats}" for w, x in zip(wide, operands, strict=True)]
    return "\n".join([*lines, f"  {result} = fcmp {how}{floats} {', '.join(wide)}"])


def compile_code(text: str, for_target: Target, pipeline: Pipeline = KERNEL) -> bytes:
    """An object in which nothing is lacking but memory."""
    return completed(optimized(text, for_target, pipeline), for_target)


def completed(whole: str, for_target: Target) -> bytes:
    """The object of a module that is optimized already, with the functions that it needs."""
    carried: set[str] = set()
    while True:
        code = objects.compile_object(whole, for_target, AFTER)
        needed = lacking(code)
        missing = [name for name in needed if name not in wasm_functions.CALLED or name in carried]
        if missing:
            raise BackendError(f"WebAssembly has no {missing[0]}, which compiled code calls")
        if not needed:
            return code
        carried.update(needed)
        whole = "\n\n".join([whole, *(wasm_functions.CALLED[name] for name in needed)]) + "\n"


def assembly(text: str, for_target: Target, pipeline: Pipeline = KERNEL) -> str:
    """The module as LLVM's assembler text, to be read."""
    return objects.assembly(optimized(text, for_target, pipeline), for_target, AFTER)


@cache
def _sources() -> str:
    """What names the code here by which modules become what they are."""
    return files_key([Path(__file__).parent], (".py",))


def cached_code(
    store: ProgramCache, text: str, for_target: Target, label: str, exported: tuple[str, ...], pipeline: Pipeline
) -> WasmCode:
    """A module that exports some functions, from the cache or compiled now and kept there."""
    parts = {"backend": "wasm", "sources": _sources()}
    return linked(objects.cached_object(store, parts, text, for_target, label, pipeline, compile_code), exported)
