"""Types as sets of values: joins, meets and what fits where, on random types."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from eshkol.lang.datum import Symbol
from eshkol.lang.reader import read
from eshkol.lang.source import Source
from eshkol.lang.syntax import to_datum
from eshkol.types.fitting import fits, proven
from eshkol.types.kinds import (
    ANY,
    BIT,
    GROUND,
    NEVER,
    Arrow,
    Type,
    can_meet,
    function,
    join,
    list_of,
    narrowed,
    pair_of,
    shown,
    tensor_of,
    vector_of,
    without,
)
from eshkol.types.reading import read_type
from eshkol.types.sizes import UNKNOWN, normal, plus, put, read_size, size_of, times, value_of

KINDS = [k for k in BIT if k not in ("pair", "vector", "procedure", "tensor", "record", "other", "promise")]
ground = st.sets(st.sampled_from(KINDS), min_size=1, max_size=4).map(lambda ks: Type(sum(BIT[k] for k in ks)))


def larger(inner: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    arrows = st.builds(lambda p, r: function(Arrow(tuple(p), None, r)), st.lists(inner, max_size=2), inner)
    return st.one_of(
        inner.map(list_of), inner.map(vector_of), st.builds(pair_of, inner, inner), st.builds(join, inner, inner),
        arrows,
        st.just(tensor_of("float32", ("n", 3))),
    )  # fmt: skip


types = st.recursive(ground, larger, max_leaves=5)


@given(types)
def test_a_type_fits_itself_and_any(kind: Type) -> None:
    assert proven(kind, kind)
    assert proven(kind, ANY)
    assert fits(ANY, kind)
    assert not proven(ANY, kind)
    assert fits(NEVER, kind)


@given(types, types)
def test_a_join_has_the_values_of_both(a: Type, b: Type) -> None:
    both = join(a, b)
    assert fits(a, both)
    assert fits(b, both)
    assert join(a, a) == a
    assert can_meet(a, both)


@given(types, types)
def test_what_is_proven_fits_and_can_meet(a: Type, b: Type) -> None:
    if proven(a, b):
        assert fits(a, b)
        assert can_meet(a, b)


@given(types, types, types)
def test_fitting_for_certain_is_transitive(a: Type, b: Type, c: Type) -> None:
    if proven(a, b) and proven(b, c):
        assert proven(a, c)


@given(ground, ground)
def test_predicates_part_a_type(kind: Type, by: Type) -> None:
    holds, fails = narrowed(kind, by), without(kind, by)
    assert join(holds, fails) == kind
    assert not can_meet(holds, fails) or NEVER in (holds, fails)
    assert proven(holds, by)


@given(st.recursive(st.sampled_from(sorted(GROUND)).map(lambda name: Type(GROUND[name])), larger, max_leaves=4))
def test_a_type_is_read_as_it_is_shown(kind: Type) -> None:
    """But for unions, of which the names of numbers may overlap, and for what only inference tells apart."""
    text = shown(kind)
    if "(U" not in text and "..." not in text:
        (form,) = read(Source("type", text))
        assert shown(read_type(to_datum(form), {}, None)) == text


sizes = st.recursive(
    st.one_of(st.integers(0, 9), st.sampled_from("abn")),
    lambda inner: st.tuples(st.sampled_from("+-*"), inner, inner),
    max_leaves=5,
)


def text_of(size: object) -> str:
    return f"({' '.join(map(text_of, size))})" if isinstance(size, tuple) else str(size)


def number(size: object, values: dict[str, int]) -> int:
    match size:
        case ("+", a, b):
            return number(a, values) + number(b, values)
        case ("-", a, b):
            return number(a, values) - number(b, values)
        case ("*", a, b):
            return number(a, values) * number(b, values)
        case str():
            return values[size]
    assert isinstance(size, int)
    return size


@given(sizes, st.fixed_dictionaries(dict.fromkeys("abn", st.integers(0, 50))))
def test_sizes_keep_their_value(size: object, values: dict[str, int]) -> None:
    (form,) = read(Source("size", text_of(size)))
    found = size_of(to_datum(form))
    assert value_of(found, values) == number(size, values)
    assert normal(read_size(found)) == found
    assert put(found, dict(values)) == number(size, values)
    assert normal(times(read_size(found), read_size(2))) == normal(plus(read_size(found), read_size(found)))


def test_sizes_that_are_none() -> None:
    assert size_of(Symbol("n")) == "n"
    assert put("2*n + 1", {"n": "m"}) == "2*m + 1"
    assert put("n", {"n": UNKNOWN}) == UNKNOWN
