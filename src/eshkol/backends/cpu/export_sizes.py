"""The C text of libraries that take any size of an axis: tables whose words are computed when the size is known.

Comes in: sequences whose words may be extents (`sized.py`), one for each class of sizes. Goes out: for each class a
structure of tables and a function that fills them in for a size, or says that the size is none of its own. What they
compute with is in `runtime/native/sizes.h`, and what they are given to in `runtime/native/model.h`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from eshkol.backends.cpu.export_text import CallTable, ExportedModel, array_text, functions_text, quoted
from eshkol.backends.cpu.needs import Need
from eshkol.errors import BackendUnavailable
from eshkol.runtime.sequence import StepWords
from eshkol.support.extents import Conditions, Extent, plain

_FIELDS = {
    "eshkol_step": ("kind", "a", "b", "c", "d", "e"), "eshkol_phase": ("body", "count", "grain"),
    "eshkol_binding": ("word", "place", "offset"), "eshkol_home": ("place", "offset"),
    "eshkol_operand": ("place", "source", "size", "alignment"),
}  # fmt: skip
_CHECKED = {"+": "add", "-": "sub", "*": "mul", "//": "quotient", "%": "remainder", "**": "power", "<<": "left",
            ">>": "right"}  # fmt: skip
_NUMBERS = {"float32": "float", "float64": "double", "int32": "int32_t", "int64": "int64_t"}


@dataclass(frozen=True)
class SizeClass:
    """What is compiled for some sizes: for those that meet conditions and lie between two, ends included."""

    model: ExportedModel
    steps: Sequence[StepWords]
    calls: Sequence[CallTable]
    counters: int
    scratch: Any
    least: int
    most: int
    conditions: Conditions | None = None  # None where it is for one size
    place_sizes: Sequence[Any] = ()
    tenancies: Sequence[tuple[int, int | None, bool]] = ()  # as `schedule/plan/arena.py` has them
    starts: Sequence[int] = ()  # places whose offsets are what is known late, in this order; then the size of all
    before: int = 0  # what else is known late, and not used
    numbers: Sequence[tuple[int, Any, str]] = ()  # places, values and dtypes of what follows from the size alone


@dataclass
class _Text:
    """The text of a class, while it is written."""

    name: str
    of: SizeClass
    members: list[str] = field(default_factory=list)
    templates: list[str] = field(default_factory=list)
    filled: list[str] = field(default_factory=list)  # statements, once all is known
    wanted: dict[int, None] = field(default_factory=dict)
    known: set[int] = field(default_factory=set)

    def value(self, given: Any) -> str:
        """An integer in C, of those that are filled in."""
        if type(given) is Extent:
            self.wanted[given.place] = None
            return f"e{given.place}"
        return _literal(given)

    def table(self, kind: str, member: str, rows: Sequence[Any]) -> None:
        """A table of the structure: a constant that is copied, and what is changed in it for a size."""
        fields = _FIELDS.get(kind)
        shown = [tuple(map(_shown, row)) if fields else _shown(row) for row in rows]
        self.members.append(f"    {kind} {member}[{len(rows) or 1}];")
        self.templates.append(array_text(kind, f"{self.name}_{member}", shown))
        self.filled.append(f"    memcpy(t->{member}, {self.name}_{member}, sizeof t->{member});")
        for number, row in enumerate(rows):
            for place, given in enumerate(row if fields else (row,)):
                if type(given) is Extent:
                    where = f"t->{member}[{number}]{f'.{fields[place]}' if fields else ''}"
                    cast = "(uint64_t)" if kind == "uint64_t" else ""
                    self.filled.append(f"    {where} = {cast}{self.value(given)};")

    def expressions(self, wanted: Sequence[int]) -> Iterator[str]:
        """Statements that compute expressions, but for those that are known; they are, then."""
        conditions = self.of.conditions
        assert conditions is not None
        for place, node in conditions.expressions(wanted):
            if place not in self.known:
                self.known.add(place)
                kind = "double" if node[0] == "number" else "int64_t"
                yield f"    const {kind} e{place} = {self._expression(node)};"

    def _expression(self, node: tuple[Any, ...]) -> str:
        match node:
            case ("number", value):
                return repr(float(value))
            case ("late", which):
                return f"late[{which - self.of.before}]"
            case ("poly", coefficients):
                found = _literal(coefficients[-1])
                for c in reversed(coefficients[:-1]):
                    found = f"eshkol_mul({found}, n, &bad)"
                    found = f"eshkol_add({found}, {_literal(c)}, &bad)" if c else found
                return found
            case (op, a, b) if op in _CHECKED:
                return f"eshkol_{_CHECKED[op]}(e{a}, e{b}, &bad)"
            case ("max" | "min" as op, a, b):
                return f"eshkol_{op}(e{a}, e{b})"
            case ("&" | "|" | "^" as op, a, b):
                return f"e{a} {op} e{b}"
        raise BackendUnavailable(f"a size is computed with '{node[0]}', which a library does not do")


def source(
    name: str, classes: Sequence[SizeClass], messages: Sequence[str], functions: Sequence[str],
    constants: Sequence[Sequence[tuple[int, int]]], needs: Sequence[Need],
) -> str:  # fmt: skip
    """The C file of a library."""
    model = classes[0].model
    names = [f"class{k}" for k in range(len(classes))]
    parts = [
        "#include <string.h>", "#include <model.h>", "#include <sizes.h>", f'#include "{name}.h"',
        *(f"void {f}(void *, int64_t, int64_t);" for f in functions),
        "extern const char eshkol_constants[];",
        array_text("char *const", "messages", [quoted(m) for m in messages]),
        f"enum {{ MESSAGES = {len(messages)} }};",
        array_text("eshkol_need", "needs", [n[1:] for n in needs]),
        *(array_text("eshkol_home", f"{own}_constant_homes", x) for own, x in zip(names, constants, strict=True)),
        *map(class_text, names, classes),
        array_text("eshkol_size_class", "classes", [(f"sizeof({own}_tables)", f"{own}_fill") for own in names]),
        f"static const eshkol_model_plan plan = {{.needs = needs, .need_count = {len(needs)}, .messages = messages, "
        ".message_count = MESSAGES};",
        f"static const eshkol_sized_plan sized = {{classes, {len(classes)}, &plan}};",
        functions_text(name, model.inputs, model.outputs, sized=True),
    ]  # fmt: skip
    return "\n\n".join(filter(None, parts)) + "\n"


def class_text(name: str, of: SizeClass) -> str:
    """The tables of a class, and the function NAME_fill."""
    text, model = _Text(name, of), of.model
    text.table("eshkol_step", "steps", of.steps)
    text.table("eshkol_phase", "phases", [p for call in of.calls for p in call.phases])
    text.table("uint64_t", "words", [w for call in of.calls for w in call.record])
    text.table("eshkol_binding", "bindings", [b for call in of.calls for b in call.bindings])
    text.table("eshkol_home", "homes", model.homes)
    for member, operands in (("inputs", model.inputs), ("outputs", model.outputs)):
        rows = [(-1 if o.place is None else o.place, o.source, o.size, o.alignment) for o in operands]
        text.table("eshkol_operand", member, rows)
    for member, kind in (("inner", "eshkol_inner"), ("faults", "int32_t")):
        rows = [row for call in of.calls for row in getattr(call, member)]
        text.templates.append(array_text(kind, f"{name}_{member}", rows))
    homes = [(place, 8 * k) for k, (place, *_) in enumerate(of.numbers)]
    text.templates.append(array_text("eshkol_home", f"{name}_number_homes", homes))
    text.members.append(f"    int64_t numbers[{len(of.numbers) or 1}];")
    text.members.append(f"    eshkol_model_call calls[{len(of.calls) or 1}];\n    eshkol_model_plan plan;")
    text.filled += [*_calls(name, of.calls), *_numbers(text), *_plan(text)]
    begin = [f"    if (n != {of.least}) return 0;"]
    if of.conditions is not None:
        begin = [*_conditions(text), *_arena(text)]
    members, templates = "\n".join(text.members), "\n".join(text.templates)
    return "\n".join([
        templates, f"typedef struct {{\n{members}\n}} {name}_tables;",
        f"static const eshkol_model_plan *{name}_fill(void *tables, int64_t n)\n{{",
        f"    {name}_tables *t = tables;\n    int bad = 0;", *begin, "    if (bad) return 0;", *text.filled,
        "    return &t->plan;\n}",
    ])  # fmt: skip


def _conditions(text: _Text) -> Iterator[str]:
    """Whether the size is one of the class."""
    of, conditions = text.of, text.of.conditions
    assert conditions is not None
    yield f"    if (n < {max(of.least, conditions.least)} || n > {min(of.most, conditions.most)}) return 0;"
    for other in sorted(conditions.not_these):
        yield f"    if (n == {other}) return 0;"
    pairs = [*conditions.others]
    yield from text.expressions([p for _, a, b in pairs for p in (a, b)])
    tests = " && ".join(f"e{a} {op} e{b}" for op, a, b in pairs) or "1"
    yield f"    if (bad || !({tests})) return 0;"


def _arena(text: _Text) -> Iterator[str]:
    """Where places lie for the size, and all that is computed from that."""
    of, sizes = text.of, text.of.place_sizes
    yield from text.expressions([x.place for x in sizes if type(x) is Extent])
    yield f"    const int64_t sizes[] = {{{', '.join([*map(text.value, sizes), '0'])}}};"
    order = [(place, -1 if heir is None else heir, int(ends)) for place, heir, ends in of.tenancies]
    yield f"    static const eshkol_tenancy order[] = {{{', '.join([*map(_row, order), '{0, 0, 0}'])}}};"
    yield f"    int64_t offsets[{len(sizes) + 1}];"
    yield f"    eshkol_gap gaps[{len(order) + 1}];"
    yield f"    const int64_t whole = eshkol_placed(order, {len(order)}, sizes, offsets, gaps, &bad);"
    yield "    if (bad) return 0;"
    yield f"    const int64_t late[] = {{{', '.join([*(f'offsets[{p}]' for p in of.starts), 'whole'])}}};"
    yield "    (void)late;"
    yield from text.expressions([*text.wanted])


def _calls(name: str, calls: Sequence[CallTable]) -> Iterator[str]:
    """The calls, whose tables lie one after another."""
    at = dict.fromkeys(("phases", "record", "bindings", "inner", "faults"), 0)
    for number, call in enumerate(calls):
        places = {"phases": "t->phases", "record": "t->words", "bindings": "t->bindings", "inner": f"{name}_inner",
                  "faults": f"{name}_faults"}  # fmt: skip
        fields = ", ".join(f"&{places[m]}[{at[m]}], {len(getattr(call, m))}" for m in at)
        yield f"    t->calls[{number}] = (eshkol_model_call){{{fields}, {call.mask:#x}u}};"
        for member in at:
            at[member] += len(getattr(call, member))


def _numbers(text: _Text) -> Iterator[str]:
    for number, (_, value, dtype) in enumerate(text.of.numbers):
        if dtype not in _NUMBERS:
            raise BackendUnavailable(f"a size becomes a number of dtype {dtype}, which a library does not do")
        kind = _NUMBERS[dtype]
        yield f"    memcpy(&t->numbers[{number}], &({kind}){{({kind}){text.value(value)}}}, sizeof({kind}));"


def _plan(text: _Text) -> Iterator[str]:
    name, of, model = text.name, text.of, text.of.model
    fields = {
        "steps": "t->steps", "step_count": len(of.steps), "calls": "t->calls", "call_count": len(of.calls),
        "place_count": model.places + 1, "counter_count": of.counters, "arena": text.value(model.arena),
        "scratch": text.value(of.scratch), "homes": "t->homes", "home_count": len(model.homes),
        "constants": "eshkol_constants", "constant_homes": f"{name}_constant_homes",
        "constant_count": len(model.constants), "numbers": "(const char *)t->numbers",
        "number_homes": f"{name}_number_homes", "number_count": len(of.numbers), "inputs": "t->inputs",
        "input_count": len(model.inputs), "outputs": "t->outputs", "output_count": len(model.outputs),
        "messages": "messages", "message_count": "MESSAGES", "parallel": 1,
    }  # fmt: skip
    yield f"    t->plan = (eshkol_model_plan){{{', '.join(f'.{field} = {x}' for field, x in fields.items())}}};"


def _row(row: Sequence[Any]) -> str:
    return f"{{{', '.join(map(str, row))}}}"


def _shown(given: Any) -> Any:
    """What a constant table has in a place: 0 where it is filled in."""
    if type(given) is Extent:
        return "0"
    return _literal(given) if isinstance(given, int) else given


def _literal(given: Any) -> str:
    """An integer in C, as a word with a sign."""
    value = int(plain(given)) & ((1 << 64) - 1)
    return "INT64_MIN" if value == 1 << 63 else str(value - (1 << 64) if value >> 63 else value)
