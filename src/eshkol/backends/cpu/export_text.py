"""The C and assembler text of exported libraries: tables for `runtime/native/model.h`, and the header of the user.

Comes in: what `export.py` knows of a model. Goes out: text. The tables are data alone; the few functions of the header
are calls of `model.c`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from eshkol.atlas.sequence import SequenceStep
from eshkol.atlas.types import Array
from eshkol.backends.cpu.needs import Need
from eshkol.errors import EshkolError
from eshkol.runtime.sequence import CALL, StepWords, Stretch
from eshkol.support.extents import Extent

__all__ = [
    "CALL", "CONSTANTS", "CallTable", "ExportedModel", "ExportedOperand", "Tables", "array_text", "extent_text",
    "functions_text", "header", "quoted", "source",
]  # fmt: skip

CONSTANTS_NAME = "eshkol_constants"  # of those of a library's one plan
CONSTANTS = """\
    .section .rodata
    .balign 64
    .globl {name}
    .hidden {name}
{name}:
    .incbin "constants.bin"
    .byte 0
    .section .note.GNU-stack,"",%progbits
"""

# dtype → C type, and what its bits are where C has no such type
TYPES = {
    "float32": ("float", ""), "float64": ("double", ""), "bool": ("uint8_t", "0 or 1"),
    "float16": ("uint16_t", "bits of a float16"), "bfloat16": ("uint16_t", "bits of a bfloat16"),
    **{f"{sign}int{bits}": (f"{sign}int{bits}_t", "") for sign in ("", "u") for bits in (8, 16, 32, 64)},
}  # fmt: skip


@dataclass(frozen=True)
class ExportedOperand:
    """An input or output: its name in C, what it is, and its place; an output with no place is a copy of another."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    size: int  # bytes
    place: int | None
    source: int = 0
    alignment: int = 1  # in bytes: that of an element

    @property
    def type(self) -> str:
        return TYPES[self.dtype][0]


@dataclass(frozen=True)
class ExportedModel:
    """A sequence with everything it works on; places are numbered as in the sequence, the arena is the first."""

    steps: Sequence[SequenceStep]
    places: int
    arena: int  # bytes
    homes: Sequence[tuple[int, int]]  # places that lie in the arena, and their offsets
    constants: Sequence[tuple[int, Array]]
    inputs: Sequence[ExportedOperand]
    outputs: Sequence[ExportedOperand]
    explained: Callable[[int, EshkolError], str]  # what is told of an error of a step


@dataclass(frozen=True)
class CallTable:
    """A call: functions by name with counts and grains, the record's words, and what changes in it."""

    phases: Sequence[tuple[str, int, int]]
    record: Sequence[int]
    bindings: Sequence[tuple[int, int, int]]
    inner: Sequence[tuple[int, int]]
    faults: Sequence[int]  # message of each
    mask: int


@dataclass(frozen=True)
class Tables:
    """A sequence as data."""

    steps: Sequence[StepWords]
    calls: Sequence[CallTable]
    regions: Sequence[Sequence[Sequence[Stretch]]]  # pieces of stretches
    messages: Sequence[str]
    counters: int
    scratch: int


# --- the tables -------------------------------------------------------------------------------------


def source(
    name: str, model: ExportedModel, tables: Tables, functions: Sequence[str], constants: Sequence[tuple[int, int]],
    needs: Sequence[Need],
) -> str:  # fmt: skip
    """The C file of a library."""
    parts = [
        "#include <model.h>",  # the runtime's, whatever the library is called
        f'#include "{name}.h"',
        plan_text(model, tables, functions, constants, needs),
        functions_text(name, model.inputs, model.outputs),
    ]
    return "\n\n".join(parts) + "\n"


def plan_text(
    model: ExportedModel, tables: Tables, functions: Sequence[str], constants: Sequence[tuple[int, int]],
    needs: Sequence[Need], constants_name: str = CONSTANTS_NAME,
) -> str:  # fmt: skip
    """The tables of a plan, as `model.h` describes them, and the plan, which is called so."""
    operands = [
        [(-1 if o.place is None else o.place, o.source, o.size, o.alignment) for o in given]
        for given in (model.inputs, model.outputs)
    ]
    parts = [
        *(f"void {f}(void *, int64_t, int64_t);" for f in functions),
        f"extern const char {constants_name}[];",
        array_text("eshkol_step", "steps", tables.steps),
        *(_call_arrays(number, call) for number, call in enumerate(tables.calls)),
        array_text("eshkol_model_call", "calls", [_call(number, call) for number, call in enumerate(tables.calls)]),
        *(_region_arrays(number, pieces) for number, pieces in enumerate(tables.regions)),
        array_text(
            "eshkol_region",
            "regions",
            [(f"stretches{n}", f"starts{n}", len(pieces)) for n, pieces in enumerate(tables.regions)],
        ),
        array_text("eshkol_home", "homes", model.homes),
        array_text("eshkol_home", "constant_homes", constants),
        array_text("eshkol_operand", "inputs", operands[0]),
        array_text("eshkol_operand", "outputs", operands[1]),
        array_text("eshkol_need", "needs", [n[1:] for n in needs]),
        array_text("char *const", "messages", [quoted(m) for m in tables.messages]),
    ]
    parallel = bool(tables.regions) or any(count > grain for call in tables.calls for _, count, grain in call.phases)
    fields = {
        "steps": "steps", "step_count": len(tables.steps), "calls": "calls", "call_count": len(tables.calls),
        "regions": "regions",
        "place_count": model.places + 1, "counter_count": tables.counters, "arena": model.arena,
        "scratch": tables.scratch, "homes": "homes", "home_count": len(model.homes), "constants": constants_name,
        "constant_homes": "constant_homes", "constant_count": len(constants), "inputs": "inputs",
        "input_count": len(model.inputs), "outputs": "outputs", "output_count": len(model.outputs), "needs": "needs",
        "need_count": len(needs), "messages": "messages", "message_count": len(tables.messages),
        "parallel": int(parallel),
    }  # fmt: skip
    plan = ",\n".join(f"    .{field} = {value}" for field, value in fields.items())
    parts.append(f"static const eshkol_model_plan plan = {{\n{plan},\n}};")
    return "\n\n".join(filter(None, parts))


def _call_arrays(number: int, call: CallTable) -> str:
    parts = [
        array_text("eshkol_phase", f"phases{number}", call.phases),
        array_text("uint64_t", f"record{number}", [f"{word:#x}u" for word in call.record]),
        array_text("eshkol_binding", f"bindings{number}", call.bindings),
        array_text("eshkol_inner", f"inner{number}", call.inner),
        array_text("int32_t", f"faults{number}", call.faults),
    ]
    return "\n".join(parts)


def _region_arrays(number: int, pieces: Sequence[Sequence[Stretch]]) -> str:
    stretches = array_text("eshkol_stretch", f"stretches{number}", [s for piece in pieces for s in piece])
    return f"{stretches}\n{array_text('int64_t', f'starts{number}', [0, *accumulate(map(len, pieces))])}"


def _call(number: int, call: CallTable) -> tuple[Any, ...]:
    fields = (("phases", call.phases), ("record", call.record), ("bindings", call.bindings), ("inner", call.inner),
              ("faults", call.faults))  # fmt: skip
    return (*(x for name, rows in fields for x in (f"{name}{number}", len(rows))), f"{call.mask:#x}u")


def array_text(kind: str, name: str, rows: Sequence[Any]) -> str:
    """An array in C; one of no rows has one that no one reads, because C has no empty arrays."""
    shown = [f"{{{', '.join(map(str, row))}}}" if isinstance(row, tuple) else str(row) for row in rows] or ["{0}"]
    return f"static const {kind} {name}[] = {{{_filled(shown)}}};"


def quoted(message: str) -> str:
    """A string of C; question marks are written as others, because two of them begin a trigraph."""
    plain = {"\n": "\\n", '"': '\\"', "\\": "\\\\", "?": "\\?"}
    return '"' + "".join(plain.get(c) or (c if " " <= c <= "~" else _octal(c)) for c in message) + '"'


def _octal(character: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in character.encode())


def _filled(items: Iterable[str]) -> str:
    """Items in lines of ordinary length."""
    lines, line = [], ""
    for item in items:
        if len(line) + len(item) > 110:
            lines.append(line)
            line = ""
        line += f"{item}, "
    return "\n    " + "\n    ".join([*lines, line.rstrip()]) + "\n"


# --- the functions ----------------------------------------------------------------------------------


def _parameters(
    name: str, inputs: Sequence[ExportedOperand], outputs: Sequence[ExportedOperand], *, comments: bool,
    sized: bool = False,
) -> str:  # fmt: skip
    def one(o: ExportedOperand, constant: str) -> str:
        extents = "".join(f"[{extent_text(n)}]" for n in o.shape) or "one element"
        bits = TYPES[o.dtype][1]
        comment = f" /* {extents}{', ' if bits else ''}{bits} */" if comments else ""
        return f"{constant}{o.type} *{o.name}{comment}"

    given = [*(one(o, "const ") for o in inputs), *(one(o, "") for o in outputs)]
    separator = f",\n{' ' * len(f'{name}_API int {name}_run(')}" if comments else ", "
    size = ["int64_t n /* the size */" if comments else "int64_t n"] if sized else []
    return separator.join([f"{name}_model *model", *size, *given])


def extent_text(extent: int) -> str:
    """The extent of an axis, as people read it."""
    return extent.conditions.text(extent.place) if type(extent) is Extent else str(extent)


def functions_text(
    name: str, inputs: Sequence[ExportedOperand], outputs: Sequence[ExportedOperand], *, sized: bool = False
) -> str:
    """The functions of the header; with `sized`, a run is told the size."""
    kind, plan, size = ("eshkol_sized_model", "&sized", "n, ") if sized else ("eshkol_model", "&plan", "")
    # C has no empty arrays: each ends with a pointer that no one reads.
    given = ", ".join([*(o.name for o in inputs), "0"])
    made = ", ".join([*(o.name for o in outputs), "0"])
    return f"""\
int {name}_check(void)
{{
    return eshkol_model_check(&plan);
}}

{name}_model *{name}_new(int threads)
{{
    return ({name}_model *){kind}_new({plan}, threads);
}}

int {name}_run({_parameters(name, inputs, outputs, comments=False, sized=sized)})
{{
    const void *const inputs_[] = {{{given}}};
    void *const outputs_[] = {{{made}}};
    return {kind}_run(({kind} *)model, {size}inputs_, outputs_);
}}

const char *{name}_error(int code)
{{
    return eshkol_model_error(&plan, code);
}}

void {name}_free({name}_model *model)
{{
    {kind}_free(({kind} *)model);
}}"""


# --- the header -------------------------------------------------------------------------------------


def header(
    name: str,
    inputs: Sequence[ExportedOperand],
    outputs: Sequence[ExportedOperand],
    needs: Sequence[str],
    about: Sequence[str],
    sized: bool = False,
) -> str:
    """The header of a library; with `sized`, of one that takes any size."""
    upper = name.upper()
    needed = ", ".join(n for n in needs if not n.endswith(" state")) or "no extension"
    constants = []
    for o in (*inputs, *outputs):
        if any(type(n) is Extent for n in o.shape):
            continue  # the comments of the parameters tell
        extents = ", ".join(map(str, o.shape)) or "1"
        constants += [
            f"#define {upper}_{o.name.upper()}_COUNT {math.prod(o.shape)} /* elements of {o.name}: {o.dtype} */",
            f"#define {upper}_{o.name.upper()}_SHAPE {{{extents}}}",
        ]
    return HEADER.format(
        name=name, upper=upper, about="".join(f" * {line}\n" for line in about), needed=_wrapped(needed),
        constants="\n".join(constants), parameters=_parameters(name, inputs, outputs, comments=True, sized=sized),
        size=SIZE.format(upper=upper) if sized else "", told=TOLD if sized else "",
    )  # fmt: skip


def _wrapped(words: str) -> str:
    """Words of a comment in lines of ordinary length."""
    lines, line = [], ""
    for word in words.split(" "):
        if len(line) + len(word) > 110:
            lines.append(line.rstrip())
            line = ""
        line += f"{word} "
    return "\n * ".join([*lines, line.rstrip()])


SIZE = "    {upper}_SIZE = 8,      /* the library was not compiled for this size */\n"
TOLD = """\
 * n is the size: the length of the axes that are called so below. A run of another size than the one before takes
 * memory anew, and somewhat longer.
"""
HEADER = """\
/* {name}: written by Eshkol.
 *
{about} *
 * The library needs the C library alone. Its CPU must have:
 * {needed}
 */
#ifndef {upper}_H
#define {upper}_H

#include <stdint.h>

#if defined(__GNUC__)
#define {upper}_API __attribute__((visibility("default")))
#else
#define {upper}_API
#endif

#ifdef __cplusplus
extern "C" {{
#endif

{constants}

/* What {name}_run and {name}_check return. */
enum {{
    {upper}_OK = 0,
    {upper}_NULL = 1,      /* the model or a pointer is NULL */
    {upper}_MEMORY = 2,    /* there is not enough memory */
    {upper}_CPU = 3,       /* this CPU lacks instructions that the library was compiled for */
    {upper}_ALIGNMENT = 4, /* an input or output is not aligned to its elements */
    {upper}_OVERLAP = 5,   /* an output overlaps an input or another output */
    {upper}_BUSY = 6,      /* the model is running in another thread */
    {upper}_THREADS = 7,   /* the threads of the model are not in this process */
{size}    {upper}_DATA = 16      /* from here on: the data is wrong, an index out of range for instance: {name}_error */
}};

/* What a run works in: memory and threads. One model is for one run at a time; several models may run at once. */
typedef struct {name}_model {name}_model;

/* {upper}_OK, or {upper}_CPU where {name}_new would give NULL for the sake of the CPU. */
{upper}_API int {name}_check(void);

/* A model whose runs use so many threads, the calling one included; 0: one for each CPU that the process may use.
 * NULL if the number is negative, memory is short or the CPU lacks something. */
{upper}_API {name}_model *{name}_new(int threads);

/* Computes the outputs from the inputs: arrays of the caller, in C's order, apart from each other.
{told} * {upper}_OK, or a code from above; the outputs are then undefined, and the model can be used again. */
{upper}_API int {name}_run({parameters});

/* What a code means. The text is the library's. */
{upper}_API const char *{name}_error(int code);

/* Ends the model's threads and gives its memory back. NULL is allowed. */
{upper}_API void {name}_free({name}_model *model);

#ifdef __cplusplus
}}
#endif

#endif
"""
