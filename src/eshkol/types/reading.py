"""Annotations as types: `(-> Float64 Nat Float64)`, `(List A)`, `(Tensor Float32 batch 784)`.

Comes in: the data that the expander keeps, the names that a program gives to types and records, and a place for errors.
Goes out: a `Type`, or an error that names what is no type and what may have been meant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from eshkol.errors import BadType
from eshkol.lang.core import Cell
from eshkol.lang.datum import List, Symbol, text
from eshkol.lang.guesses import near_names
from eshkol.lang.report import bad
from eshkol.lang.source import Place
from eshkol.types.kinds import (
    ANY,
    BOOLEAN,
    GROUND,
    HANDLES,
    NAT,
    SPELLINGS,
    Arrow,
    Function,
    Named,
    ProofOf,
    RecordOf,
    Type,
    TypeVariable,
    ValuesOf,
    function,
    handle_of,
    join_all,
    list_of,
    pair_of,
    tensor_of,
    vector_of,
)
from eshkol.types.propositions import Proposition, Where, braces_in, is_braces, is_proof, read_proposition, written
from eshkol.types.sizes import Size, size_of

ARROWS = ("->", "→")
_BY_NAME = {name.lower(): Type(bits) for name, bits in GROUND.items()}
_BY_NAME |= {spelling.lower(): Type(GROUND[name]) for spelling, name in SPELLINGS.items()}
_BY_NAME["any"] = ANY
DTYPES = {
    "float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
    "uint64", "bool", "boolean", "complex64", "complex128",
}  # fmt: skip
CONSTRUCTORS = ("List", "Vector", "Pair", "->", "Values", "U", "All", "Rec", "Tensor", "case->", "Proof", *HANDLES)

RECORD_OF, PREDICATE_OF = "%record-of", "%predicate-of"  # in what libraries say to importers (exporting.py)

Names = Mapping[str, Type]


def read_type(datum: Any, names: Names, place: Place | None) -> Type:
    """A type, by its data."""
    if isinstance(datum, Symbol):
        found = names.get(datum.name) or _BY_NAME.get(datum.name.lower())
        if found is None:
            raise _unknown(datum.name, names, place)
        return found
    if is_braces(datum):
        read_proposition(datum, place)
        return NAT
    if isinstance(datum, List) and datum.items and datum.tail is None and isinstance(datum.items[0], Symbol):
        return _constructed(datum.items[0].name, datum, names, place)
    raise bad(f"{text(datum)} is no type", place, "types are names, such as Float64, and (List Float64)", kind=BadType)


def read_parameter_type(datum: Any, names: Names, place: Place | None) -> Type:
    """The type of a parameter, which may be that of a proof."""
    if is_proof(datum):
        return Type(0, (ProofOf(read_proposition(datum.items[1], place)),))
    return read_type(datum, names, place)


@cache
def _cell_elsewhere(library: str, name: str) -> Cell:
    return Cell(library, name)


def _record_elsewhere(items: Sequence[Any]) -> RecordOf:
    """The records of another library: `(%record-of library variable)`."""
    library, name = items[0], items[1].name
    return RecordOf(name.strip("<>"), _cell_elsewhere(library, name))


def records_in(annotation: Any) -> dict[str, Type]:
    """The records of other libraries that an annotation speaks of, by their names."""
    found: dict[str, Type] = {}
    todo = [annotation]
    while todo:
        datum = todo.pop()
        if isinstance(datum, List) and datum.items:
            if datum.items[0] is Symbol(RECORD_OF):
                record = _record_elsewhere(datum.items[1:])
                found[record.name] = Type(0, (record,))
            else:
                todo += datum.items
    return found


def asked_for(annotation: Any) -> Type | None:
    """The records that a predicate of another library asks for."""
    if not isinstance(annotation, List) or not annotation.items or annotation.items[0] is not Symbol(PREDICATE_OF):
        return None
    return read_type(annotation.items[1], {}, None)


def _unknown(name: str, names: Names, place: Place | None) -> Exception:
    known = [*GROUND, *SPELLINGS, *names, "Any"]
    near = near_names(name, known) or [k for k in known if k.lower().startswith(name.lower()[:3])][:1]
    about = " or ".join(f"`{one}`" for one in near[:3])
    hint = f"did you mean {about}?" if about else "(define-type name type) gives a name to a type"
    if name in CONSTRUCTORS:
        hint = f"it makes types of others: ({name} Float64)"
    return bad(f"there is no type `{name}`", place, hint, kind=BadType)


def _constructed(name: str, datum: List, names: Names, place: Place | None) -> Type:
    items = datum.items[1:]

    def types(least: int, most: int | None, shape: str) -> list[Type]:
        if len(items) < least or (most is not None and len(items) > most):
            raise bad(f"{text(datum)} is not like {shape}", place, kind=BadType)
        return [read_type(item, names, place) for item in items]

    match name.lower():
        case "->" | "→":
            return _arrow(datum, names, place)
        case "case->":
            parts = [part for kind in types(1, None, "(case-> (-> A B) ...)") for part in kind.parts]
            return function(*(arrow for part in parts if isinstance(part, Function) for arrow in part.arrows))
        case "list" | "listof":
            return list_of(*types(1, 1, "(List A)"))
        case "pair" | "pairof":
            return pair_of(*types(2, 2, "(Pair A B)"))
        case "vector" | "vectorof":
            if not 1 <= len(items) <= 2:
                raise bad(f"{text(datum)} is not like (Vector A) or (Vector A n)", place, kind=BadType)
            length = _size(items[1], datum, place) if len(items) == 2 else None
            return vector_of(read_type(items[0], names, place), length)
        case "owned" | "linear" | "shared" | "weak":
            return handle_of(name.capitalize(), *types(1, 1, f"({name.capitalize()} A)"))
        case "u" | "or":
            return join_all(types(1, None, "(U A B ...)"))
        case "values":
            kinds = types(0, None, "(Values A B ...)")
            return kinds[0] if len(kinds) == 1 else Type(0, (ValuesOf(tuple(kinds)),))
        case "all":
            return _polymorphic(datum, names, place)
        case "rec":
            if len(items) != 2 or not isinstance(items[0], Symbol):
                raise bad(f"{text(datum)} is not like (Rec name type)", place, kind=BadType)
            named = Named(items[0].name, lambda: read_type(items[1], inner, place))
            inner = {**names, items[0].name: Type(0, (named,))}
            return inner[items[0].name]
        case "tensor":
            return _tensor(datum, place)
        case "%record-of":
            return Type(0, (_record_elsewhere(items),))
        case "%predicate-of":
            return function(Arrow((ANY,), None, BOOLEAN))
        case "proof":
            said = written(items[0]) if len(items) == 1 and is_braces(items[0]) else "..."
            raise bad(
                f"(Proof {said}) cannot stand here", place,
                "(Proof {n = m}) is the whole type of a parameter: the names in it mean something there alone",
                kind=BadType,
            )  # fmt: skip
    raise bad(
        f"there is no type constructor `{name}`", place,
        f"there are {', '.join(CONSTRUCTORS)}", kind=BadType,
    )  # fmt: skip


def _size(item: Any, datum: Any, place: Place | None) -> Size:
    if is_braces(item):
        return read_proposition(item, place).subject
    try:
        return size_of(item)
    except ValueError:
        raise bad(
            f"{text(item)} in {text(datum)} is no size", place,
            "a size is a number, a name, or a sum or product of such: (* 2 n)", kind=BadType,
        ) from None  # fmt: skip


def _tensor(datum: List, place: Place | None) -> Type:
    items = datum.items[1:]
    dtype, dims = None, list(items)
    if dims and isinstance(dims[0], Symbol):
        name = dims[0].name.lower()
        if name in DTYPES:
            dtype = "bool" if name == "boolean" else name
            dims = dims[1:]
        elif name == "any":
            dims = dims[1:]
    if len(dims) == 1 and isinstance(dims[0], Symbol) and dims[0].name == "...":
        return tensor_of(dtype, None)
    return tensor_of(dtype, tuple(_size(item, datum, place) for item in dims))


def _polymorphic(datum: List, names: Names, place: Place | None) -> Type:
    items = datum.items
    variables = items[1].items if len(items) == 3 and isinstance(items[1], List) else ()
    if not variables or not all(isinstance(v, Symbol) for v in variables):
        raise bad(f"{text(datum)} is not like (All (A ...) type)", place, kind=BadType)
    bound = tuple(TypeVariable(v.name) for v in variables)
    kind = read_type(items[2], {**names, **{v.name: Type(0, (v,)) for v in bound}}, place)
    part = kind.parts[0] if len(kind.parts) == 1 and not kind.mask else None
    arrows = getattr(part, "arrows", None)
    if arrows is None:
        raise bad(f"{text(datum)}: All stands before the type of a procedure", place, kind=BadType)
    return function(*(Arrow(a.params, a.rest, a.result, a.optional, (*bound, *a.variables)) for a in arrows))


def _about(proposition: Proposition, index: int, param: Any, place: Place | None) -> Where:
    own = is_braces(param)
    params = ((proposition.subject, index),) if own else ()
    return Where(proposition, params, index if own else None, place, index if is_proof(param) else None)


def _arrow(datum: List, names: Names, place: Place | None) -> Type:
    """`(-> A B ... R)`; `A *` is any number of them, `[A]` (a list of one type) one that may be left out."""
    items = [item for item in datum.items[1:] if not (isinstance(item, Symbol) and item.name in ARROWS)]
    if not items:
        raise bad("(->) says nothing: the last type in it is that of the result", place, kind=BadType)
    *before, last = items
    rest = None
    if before and isinstance(before[-1], Symbol) and before[-1].name == "*":
        if len(before) < 2:
            raise bad(f"{text(datum)}: a type belongs before the *", place, kind=BadType)
        rest = read_type(before[-2], names, place)
        before = before[:-2]
    params, optional = [], 0
    where = [
        _about(proposition, index, item, place)
        for index, item in enumerate(before)
        for datum_ in braces_in(item)
        for proposition in (read_proposition(datum_, place),)
    ]
    for item in before:
        left_out = isinstance(item, List) and len(item.items) == 1
        if optional and not left_out:
            raise bad(f"{text(datum)}: what may be left out stands last", place, kind=BadType)
        optional += left_out
        params.append(read_parameter_type(item.items[0] if left_out else item, names, place))
    return function(Arrow(tuple(params), rest, read_type(last, names, place), optional, (), tuple(where)))
