"""A C library of Scheme procedures: what C sees of it.

Comes in: what a file provides, with the types that it declares. Goes out: a header, and the C file that stands between
it and the runtime (runtime/native/executable/library.h). A procedure whose types C has, as `(: area (-> Float64
Float64))` or `(define (area (r : Float64)) : Float64 ...)` declare them, is a C function of its own; all others are
called through values, by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from eshkol.errors import EshkolError
from eshkol.lang.core import Cell, DefineGlobal, Lambda, Node
from eshkol.lang.datum import List, Symbol
from eshkol.lang.libraries import Module
from eshkol.lang.meanings import CellBinding


@dataclass(frozen=True)
class CType:
    """A type of C's: how it is written, which kind of value it is there, and how the two meet."""

    written: str
    kind: str
    field: str
    failed: str  # what a function gives where it failed


REAL = CType("double", "KIND_REAL", "real", "NAN")
INTEGER = CType("int64_t", "KIND_INTEGER", "integer", "0")
BOOLEAN = CType("bool", "KIND_BOOLEAN", "integer", "false")
STRING = CType("const char *", "KIND_STRING", "string", "NULL")
NOTHING = CType("void", "KIND_NOTHING", "integer", "")
TYPES: Mapping[str, CType] = {
    **dict.fromkeys(("float64", "float", "double", "real", "flonum", "number"), REAL),
    **dict.fromkeys(("int64", "int", "integer", "fixnum"), INTEGER),
    **dict.fromkeys(("bool", "boolean"), BOOLEAN),
    "string": STRING,
    **dict.fromkeys(("void", "unit", "nothing", "unspecified"), NOTHING),
}
_WORDS = """
    auto bool break case char const continue default do double else enum extern float for goto if inline int long
    register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while main
    and or not xor class new delete this template typename namespace private public operator true false
"""
RESERVED = frozenset(_WORDS.split())  # of C and C++
_SPELLED = (("->", "_to_"), ("?", "_p"), ("!", ""), ("*", "_star"), ("+", "_plus"), ("<", "_less"), (">", "_greater"),
            ("=", "_equal"), ("/", "_over_"), ("%", ""))  # fmt: skip


@dataclass(frozen=True)
class Export:
    """What a library provides under a name: a variable, and its types where C has them."""

    name: str
    cell: Cell
    parameters: tuple[CType, ...] = ()
    result: CType | None = None  # None: called through values


def exports_of(module: Module, forms: Iterable[Node]) -> list[Export]:
    """What a module provides; `forms` are those that define it."""
    lambdas = {
        (form.cell.library, form.cell.name): form.value
        for form in forms
        if isinstance(form, DefineGlobal) and isinstance(form.value, Lambda)
    }
    found = []
    for name, binding in sorted(module.exports.items()):
        if not isinstance(binding, CellBinding):
            continue  # macros are gone by then
        cell = binding.cell
        types = _declared(cell.annotation, lambdas.get((cell.library, cell.name)))
        found.append(Export(name, cell, *(types or ((), None))))
    if not found:
        raise EshkolError("the file provides nothing that a library could have", hint="(provide name ...) says what")
    return found


def settled(export: Export, cells: Mapping[tuple[str, str], Cell]) -> Export:
    """An export with the cell that a whole program has for its variable."""
    cell = cells.get((export.cell.library, export.cell.name))
    if cell is None:
        raise EshkolError(f"{export.name} is not defined by the program, so a library cannot provide it",
                          hint=f"(define (name argument ...) ({export.name} argument ...)) defines one")  # fmt: skip
    return replace(export, cell=cell)


def _declared(annotation: Any, code: Lambda | None) -> tuple[tuple[CType, ...], CType] | None:
    """Types of parameters and result as a declaration has them, if C has all of them."""
    if isinstance(annotation, List) and annotation.items and _is_arrow(annotation.items[0]):
        types = [_type(one) for one in annotation.items[1:] if not _is_arrow(one)]
    elif code is not None and len(code.clauses) == 1 and code.clauses[0].rest is None:
        clause = code.clauses[0]
        types = [*(_type(v.annotation) for v in clause.params), _type(clause.returns)]
    else:
        return None
    known = [one for one in types if one is not None]
    if not known or len(known) != len(types) or NOTHING in known[:-1]:
        return None
    return tuple(known[:-1]), known[-1]


def _is_arrow(datum: Any) -> bool:
    return isinstance(datum, Symbol) and datum.name in ("->", "→")


def _type(datum: Any) -> CType | None:
    return TYPES.get(datum.name.lower()) if isinstance(datum, Symbol) else None


def c_name(name: str) -> str:
    """A name of Scheme's as C has it: vector->list is vector_to_list, empty? is empty_p."""
    for old, new in _SPELLED:
        name = name.replace(old, new)
    name = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"{name}_" if name in RESERVED else f"_{name}" if name[:1].isdigit() else name


def header(library: str, exports: Sequence[Export]) -> str:
    """The header of a library."""
    guard = f"{library.upper()}_H"
    functions = "\n".join(f"{_signature(e)}; /* ({_call(e)}) */" for e in exports if e.result is not None)
    untyped = ", ".join(e.name for e in exports if e.result is None)
    values = _api(library)
    return f"""\
/* {library}: procedures of a program in Eshkol, to be called from C.
 *
 * Calls may come from any thread; they run one after the other, each on the stack of its thread. A function that fails
 * gives NAN, 0, false or NULL, and {library}_error() says why until this thread's next call; it gives NULL after a call
 * that did not fail. A text belongs to the library, and stays until this thread's next call. */
#ifndef {guard}
#define {guard}

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

{functions}

/* All of what is provided can be called through values, by name{f": {untyped}" if untyped else ""}.
 * What a function gives is to be released. */
typedef struct {library}_value {library}_value;
{values};

#ifdef __cplusplus
}}
#endif

#endif
"""


def _signature(export: Export) -> str:
    assert export.result is not None
    given = ", ".join(f"{_spaced(kind.written)}a{number}" for number, kind in enumerate(export.parameters, 1))
    return f"{_spaced(export.result.written)}{c_name(export.name)}({given or 'void'})"


def _spaced(written: str) -> str:
    return written if written.endswith("*") else f"{written} "


def _call(export: Export) -> str:
    return " ".join([export.name, *(f"a{number}" for number in range(1, len(export.parameters) + 1))])


def _api(library: str) -> str:
    """The functions of values."""
    value = f"{library}_value *"
    return ";\n".join([
        f"const char *{library}_error(void)",
        f"{value}{library}_call(const char *procedure, int count, {value}const *arguments)",
        f"{value}{library}_real(double number)",
        f"{value}{library}_integer(int64_t number)",
        f"{value}{library}_boolean(bool truth)",
        f"{value}{library}_string(const char *utf8)",
        f"bool {library}_as_real(const {value}value, double *result) /* whether it is one */",
        f"bool {library}_as_integer(const {value}value, int64_t *result)",
        f"bool {library}_as_boolean(const {value}value) /* whether it is not #f */",
        f"const char *{library}_as_string(const {value}value)",
        f"const char *{library}_text(const {value}value) /* as `write` shows it */",
        f"void {library}_release({value}value)",
    ])  # fmt: skip


def source(library: str, exports: Sequence[Export], places: Mapping[Cell, int]) -> str:
    """The C file of a library; `places` says where variables lie among the program's values."""
    names: dict[str, str] = {}
    rows, functions = [], []
    for number, export in enumerate(exports):
        rows.append(f'    {{"{_quoted(export.name)}", {places[export.cell]}}},')
        if export.result is None:
            continue
        name = c_name(export.name)
        if names.setdefault(name, export.name) != export.name:
            raise EshkolError(
                f"{names[name]} and {export.name} would both be {name} in C",
                hint="(provide (rename old new)) gives one of them another name",
            )
        functions.append(_function(export, number))
    text = _VALUES.replace("$", library)
    return "\n".join([
        '#include "library.h"', "#include <stdlib.h>", f'#include "{library}.h"', "",
        "const Export esk_exports[] = {", *rows, "    {NULL, 0},", "};", "",
        '#pragma GCC visibility push(default)', *functions, text, "#pragma GCC visibility pop", "",
    ])  # fmt: skip


def _function(export: Export, number: int) -> str:
    assert export.result is not None
    arguments = [
        f"        {{.kind = {kind.kind}, .of.{kind.field} = a{place}}},"
        for place, kind in enumerate(export.parameters, 1)
    ]
    given = (
        "\n".join(["    Argument given[] = {", *arguments, "    };"]) if arguments else "    Argument *given = NULL;"
    )
    nothing = export.result is NOTHING
    end = "" if nothing else f"\n    return good ? result.of.{export.result.field} : {export.result.failed};"
    used = "    (void)good;\n" if nothing else ""
    return (
        f"{_signature(export)} {{\n{given}\n    Argument result = {{0}};\n"
        f"    bool good = esk_library_call(&esk_exports[{number}], given, {len(arguments)}, {export.result.kind}, "
        f"&result);\n{used}{end[1:]}\n}}\n"
    )


def _quoted(name: str) -> str:
    return "".join(f"\\{b:03o}" if b in b'"\\' or not 32 <= b < 127 else chr(b) for b in name.encode())


_VALUES = """\
const char *$_error(void) { return esk_library_error(); }

$_value *$_call(const char *procedure, int count, $_value *const *arguments) {
    const Export *what = esk_library_find(procedure);
    Argument *given = what ? calloc((size_t)count + 1, sizeof *given) : NULL;
    Argument result = {0};
    if (!given) return NULL;
    for (int i = 0; i < count; i++)
        given[i] = (Argument){.kind = KIND_VALUE, .of.value = (const Value *)(const void *)arguments[i]};
    bool good = esk_library_call(what, given, count, KIND_VALUE, &result);
    free(given);
    return good ? ($_value *)(uintptr_t)result.of.value : NULL;
}

static $_value *made(Argument what) { return ($_value *)(void *)esk_library_value(&what); }
$_value *$_real(double number) { return made((Argument){.kind = KIND_REAL, .of.real = number}); }
$_value *$_integer(int64_t number) { return made((Argument){.kind = KIND_INTEGER, .of.integer = number}); }
$_value *$_boolean(bool truth) { return made((Argument){.kind = KIND_BOOLEAN, .of.integer = truth}); }
$_value *$_string(const char *utf8) { return made((Argument){.kind = KIND_STRING, .of.string = utf8}); }

static bool taken(const $_value *value, enum Kind kind, Argument *result) {
    return esk_library_as((const Value *)(const void *)value, kind, result);
}
bool $_as_real(const $_value *value, double *result) {
    Argument found = {0};
    if (!taken(value, KIND_REAL, &found)) return false;
    *result = found.of.real;
    return true;
}
bool $_as_integer(const $_value *value, int64_t *result) {
    Argument found = {0};
    if (!taken(value, KIND_INTEGER, &found)) return false;
    *result = found.of.integer;
    return true;
}
bool $_as_boolean(const $_value *value) {
    Argument found = {0};
    return taken(value, KIND_BOOLEAN, &found) && found.of.integer;
}
const char *$_as_string(const $_value *value) {
    Argument found = {0};
    return taken(value, KIND_STRING, &found) ? found.of.string : NULL;
}
const char *$_text(const $_value *value) { return esk_library_text((const Value *)(const void *)value); }
void $_release($_value *value) { esk_library_release((Value *)(void *)value); }
"""
