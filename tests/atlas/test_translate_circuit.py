"""Circuits: transforms, generators and composition against NumPy on class memory; errors with their spans."""

from __future__ import annotations

import doctest
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batches import of_each
from eshkol.atlas import numerics as nx
from eshkol.atlas.classes import CLASSES, PAGE_BYTES, PAGES
from eshkol.atlas.operands import BinaryMapOperation, MapOperation, Register
from eshkol.atlas.program import LaunchConfig, Program
from eshkol.atlas.rounding import to_array
from eshkol.atlas.table import ROWS
from eshkol.atlas.translate import circuit as circuit_module
from eshkol.atlas.translate import translate_circuit
from eshkol.atlas.translate.circuit_parser import NESTING_LIMIT
from eshkol.atlas.types import Type, decode, encode
from eshkol.atlas.validate import validate
from eshkol.backends.reference import ReferenceBackend
from eshkol.errors import IsaError

LAUNCHES = [LaunchConfig(), LaunchConfig.linear(5), LaunchConfig((3, 1, 1), (4, 2, 1))]
Memory = np.ndarray  # 96 classes of 48 pages of 256 bytes


def run(source: str, memory: Memory, element: Type = Type.F32, launch: LaunchConfig = LAUNCHES[1], *,
        expanded: bool = False) -> Memory:  # fmt: skip
    """Class memory after a circuit, from what it was before."""
    program = translate_circuit(source, element)
    validate(program)
    backend = ReferenceBackend(expanded=expanded)
    backend.class_memory[:] = memory.reshape(-1)
    backend.execute(program, launch, {})
    return np.array(backend.class_memory).reshape(memory.shape)


def noise(seed: int = 0, *, positive: bool = False) -> Memory:
    """Class memory full of moderate F32 values."""
    rng = np.random.default_rng(seed)
    values = rng.uniform(0.25 if positive else -4, 4, (CLASSES, PAGES, PAGE_BYTES // 4)).astype(np.float32)
    return values.view(np.uint8)


NOISE, POSITIVE = noise(), noise(positive=True)


def floats(memory: Memory, cls: int, page: int = 0) -> np.ndarray:
    return memory[cls, page].view(np.float32)


def unchanged_but(before: Memory, after: Memory, *places: tuple[int, int]) -> None:
    """Nothing outside these pages may have changed."""
    same = (before == after).all(axis=2)
    assert {(int(c), int(p)) for c, p in np.argwhere(~same)} <= set(places)


def marked(memory: Memory) -> set[tuple[int, int]]:
    """Which pages of a memory of zeros a circuit of marks has marked (an odd number of times)."""
    pages = memory == 0x80
    assert (pages | (memory == 0)).all()
    return {(int(c), int(p)) for c, p in np.argwhere(pages.all(axis=2))}


def places_of(source: str) -> set[tuple[int, int]]:
    return marked(run(source, np.zeros_like(NOISE)))


# --- places and transforms ------------------------------------------------------------------------


def digits(cls: int) -> tuple[int, int, int]:
    return cls // 24, cls // 8 % 3, cls % 8


def moved(cls: int, rotate: int = 0, twist: int = 0, mirror: bool = False) -> int:
    h2, d, lane = digits(cls)
    d = {0: 0, 1: 2, 2: 1}[d] if mirror else d
    return 24 * ((h2 + rotate) % 4) + 8 * d + (lane + twist) % 8


def test_digits_make_the_class() -> None:
    assert [24 * h + 8 * d + lane for h, d, lane in map(digits, range(CLASSES))] == list(range(CLASSES))


def written(source: str) -> list[int]:
    """The classes that the LOOPs of a circuit of marks store to, from the program alone."""
    program = translate_circuit(source)
    return [i.dst.base.class_id for i in program.instructions if i.op.name == "STG"]


@pytest.mark.parametrize("amount", range(-9, 10))
def test_rotation_of_all_classes(amount: int) -> None:
    assert written(f"R{amount:+}@mark@c[0..95]") == [moved(c, rotate=amount) for c in range(CLASSES)]


@pytest.mark.parametrize("amount", range(-9, 10))
def test_twist_of_all_classes(amount: int) -> None:
    oracle = [moved(c, twist=amount) for c in range(CLASSES)]
    assert written(f"T{amount:+}@mark@c[0..95]") == oracle
    assert written(f"mark@c[0..95]^{amount:+}") == oracle


def test_mirror_of_all_classes() -> None:
    oracle = [moved(c, mirror=True) for c in range(CLASSES)]
    assert written("~@mark@c[0..95]") == written("mark@c[0..95]~") == oracle
    assert written("~@mark@c[0..95]~") == list(range(CLASSES))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 95), *[st.integers(-20, 20)] * 3, st.booleans(), st.booleans())
def test_transforms_compose(cls: int, rotate: int, twist: int, own: int, outer: bool, inner: bool) -> None:
    prefix = f"R{rotate:+} T{twist:+}{' ~' * outer} @ "
    assert written(f"{prefix}mark@c{cls}^{own:+}{'~' * inner}") == [moved(cls, rotate, twist + own, outer != inner)]


def test_a_transform_moves_every_class_of_the_phrase() -> None:
    assert places_of("R+1@(mark@c00 . mark@c5@3) || mark@c[30..31]") == {(24, 0), (29, 3), (54, 0), (55, 0)}


def test_places() -> None:
    assert places_of("mark@c0") == places_of("mark@c00") == places_of("mark@c000") == {(0, 0)}
    assert places_of("mark@c95@47") == {(95, 47)}
    assert places_of("mark@c07^+1~@2") == {(0, 2)}
    assert places_of("mark@c09~") == {(17, 0)}
    assert places_of("mark@c[3..3]@1") == {(3, 1)}
    assert places_of(" mark @ c [ 3 .. 5 ] ^ - 1 \n . mark@c20 ") == {(2, 0), (3, 0), (4, 0), (20, 0)}


# --- generators -----------------------------------------------------------------------------------


@pytest.mark.parametrize("launch", LAUNCHES)
@pytest.mark.parametrize("expanded", [False, True])
def test_mark_flips_the_top_bit_of_every_byte(launch: LaunchConfig, expanded: bool) -> None:
    after = run("mark@c21@5", NOISE, launch=launch, expanded=expanded)
    np.testing.assert_array_equal(after[21, 5], NOISE[21, 5] ^ 0x80)
    unchanged_but(NOISE, after, (21, 5))
    np.testing.assert_array_equal(run("mark@c21 . mark@c21", NOISE, launch=launch), NOISE)


@pytest.mark.parametrize("launch", LAUNCHES)
def test_copy_and_swap(launch: LaunchConfig) -> None:
    after = run("copy@c05->c06@7", NOISE, launch=launch)
    np.testing.assert_array_equal(after[6, 7], NOISE[5, 0])
    unchanged_but(NOISE, after, (6, 7))
    after = run("swap@c10@1<->c11", NOISE, launch=launch)
    np.testing.assert_array_equal(after[10, 1], NOISE[11, 0])
    np.testing.assert_array_equal(after[11, 0], NOISE[10, 1])
    unchanged_but(NOISE, after, (10, 1), (11, 0))
    np.testing.assert_array_equal(run("copy@c05->c05 . swap@c06<->c06", NOISE, launch=launch), NOISE)


def scalar(operation: BinaryMapOperation | MapOperation, *inputs: np.ndarray) -> np.ndarray:
    instruction = ROWS[operation.value](*(Register(k) for k in range(len(inputs) + 1)))
    return nx.evaluate(instruction, list(inputs), Type.of_dtype(inputs[0].dtype))


BINARY = [
    ("merge", BinaryMapOperation.Add), ("merge:add", BinaryMapOperation.Add), ("merge:mul", BinaryMapOperation.Mul),
    ("merge:min", BinaryMapOperation.Min), ("merge:max", BinaryMapOperation.Max),
    ("split", BinaryMapOperation.Sub), ("split:sub", BinaryMapOperation.Sub), ("split:div", BinaryMapOperation.Div),
]  # fmt: skip


@pytest.mark.parametrize(("generator", "operation"), BINARY)
@pytest.mark.parametrize("expanded", [False, True])
def test_merge_and_split(generator: str, operation: BinaryMapOperation, expanded: bool) -> None:
    after = run(f"{generator}@c00[c01@3,c02]", NOISE, expanded=expanded)
    np.testing.assert_array_equal(floats(after, 2), scalar(operation, floats(NOISE, 0), floats(NOISE, 1, 3)))
    unchanged_but(NOISE, after, (2, 0))


def test_merge_is_the_sum_the_specification_gives() -> None:
    after = run("merge@c00[c01,c02]", NOISE)
    np.testing.assert_array_equal(floats(after, 2), floats(NOISE, 0) + floats(NOISE, 1))


@pytest.mark.parametrize("generator", ["merge@c03[c04,c03]", "merge@c04[c03,c03]"])
def test_merge_into_an_operand(generator: str) -> None:
    np.testing.assert_array_equal(floats(run(generator, NOISE), 3), floats(NOISE, 3) + floats(NOISE, 4))


@pytest.mark.parametrize("operation", MapOperation)
def test_unary_merges(operation: MapOperation) -> None:
    oracle = scalar(operation, floats(POSITIVE, 7))
    name = operation.name.lower()
    after = run(f"merge:{name}@c07[c08,c09]", POSITIVE)
    np.testing.assert_array_equal(floats(after, 9), oracle)
    unchanged_but(POSITIVE, after, (9, 0))
    after = run(f"merge:{name}@c07", POSITIVE)
    np.testing.assert_array_equal(floats(after, 7), oracle)
    unchanged_but(POSITIVE, after, (7, 0))


@pytest.mark.parametrize(("generator", "oracle"), [
    ("reduce", np.sum), ("reduce:sum", np.sum), ("reduce:min", np.min), ("reduce:max", np.max),
])  # fmt: skip
@pytest.mark.parametrize("launch", LAUNCHES)
def test_reduce(generator: str, oracle: object, launch: LaunchConfig) -> None:
    after = run(f"{generator}@c30@2", NOISE, launch=launch)
    assert callable(oracle)
    np.testing.assert_allclose(floats(after, 30, 2)[0], oracle(floats(NOISE, 30, 2).astype(np.float64)), rtol=1e-6)
    np.testing.assert_array_equal(floats(after, 30, 2)[1:], floats(NOISE, 30, 2)[1:])
    unchanged_but(NOISE, after, (30, 2))


@pytest.mark.parametrize("expanded", [False, True])
def test_softmax(expanded: bool) -> None:
    after = run("softmax@c12", NOISE, expanded=expanded)
    weights = np.exp(floats(NOISE, 12).astype(np.float64))
    np.testing.assert_allclose(floats(after, 12), weights / weights.sum(), rtol=1e-5)
    unchanged_but(NOISE, after, (12, 0))


ELEMENTS = [Type.U8, Type.I16, Type.I32, Type.U64, Type.F16, Type.BF16, Type.F64, Type.I128, Type.I2048]


@pytest.mark.parametrize("element", ELEMENTS)
def test_other_element_types(element: Type) -> None:
    count = PAGE_BYTES // element.size_bytes
    ones = encode(to_array([1] * count, element), element).reshape(-1)
    memory = np.broadcast_to(ones, (CLASSES, PAGES, PAGE_BYTES))
    after = run("merge@c00[c01,c02] . reduce@c02", memory, element)
    page = decode(after[2, 0].reshape(count, -1), element)
    assert [int(v) for v in page] == [2 * count % 2**element.bits, *[2] * (count - 1)]


def test_integer_merges_wrap() -> None:
    memory = np.full((CLASSES, PAGES, PAGE_BYTES), 250, np.uint8)
    assert set(run("merge@c00[c01,c02]", memory, Type.U8)[2, 0].tolist()) == {244}


# --- composition ----------------------------------------------------------------------------------


def test_sequence_runs_from_left_to_right() -> None:
    after = run("copy@c00->c01 . merge@c01[c02,c03] . copy@c03->c02 . merge:neg@c03 . mark@c01", NOISE)
    total = floats(NOISE, 0) + floats(NOISE, 2)
    np.testing.assert_array_equal(floats(after, 2), total)
    np.testing.assert_array_equal(floats(after, 3), -total)
    np.testing.assert_array_equal(after[1, 0], NOISE[0, 0] ^ 0x80)


def test_dependent_steps_are_ordered_whatever_the_launch() -> None:
    source = "merge@c00[c01,c02] . mark@c02 . mark@c02 . merge:mul@c02[c02,c03] . reduce:max@c03 . swap@c03<->c04"
    results = [run(source, NOISE, launch=launch) for launch in LAUNCHES]
    total = floats(NOISE, 0) + floats(NOISE, 1)
    assert floats(results[0], 4)[0] == (total * total).max()
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)


def test_a_barrier_stands_between_code_of_one_lane_and_of_all() -> None:
    program = translate_circuit("merge@c00[c01,c02] . mark@c02 . copy@c02->c03 . merge:mul@c02[c03,c04] . softmax@c04")
    names = [i.op.name for i in program.instructions]
    array_steps = [k for k, name in enumerate(names) if name in ("ParallelMapBinary", "Softmax")]
    barriers = [k for k, name in enumerate(names) if name == "GridSync"]
    assert barriers == [array_steps[0] + 1, array_steps[1] - 1]
    assert "GridSync" not in [i.op.name for i in translate_circuit("mark@c00 . swap@c01<->c02").instructions]


def test_parallel_sides() -> None:
    after = run("(copy@c00->c01 . mark@c01) || (merge@c00[c02,c03]) || mark@c04", NOISE)
    np.testing.assert_array_equal(after[1, 0], NOISE[0, 0] ^ 0x80)
    np.testing.assert_array_equal(floats(after, 3), floats(NOISE, 0) + floats(NOISE, 2))
    np.testing.assert_array_equal(after[4, 0], NOISE[4, 0] ^ 0x80)


def test_parallel_sides_may_read_the_same_place_and_write_other_pages() -> None:
    after = run("copy@c00->c01 || copy@c00->c01@1 || mark@c01@2", NOISE)
    np.testing.assert_array_equal(after[1, 0], NOISE[0, 0])
    np.testing.assert_array_equal(after[1, 1], NOISE[0, 0])


def test_ranges_advance_together() -> None:
    after = run("merge@c[0..3][c[10..13],c[20..23]]", NOISE)
    for k in range(4):
        np.testing.assert_array_equal(floats(after, 20 + k), floats(NOISE, k) + floats(NOISE, 10 + k))
    after = run("copy@c00->c[40..44]", NOISE)
    for k in range(5):
        np.testing.assert_array_equal(after[40 + k, 0], NOISE[0, 0])
    after = run("swap@c[0..1]<->c[2..3]@1", NOISE)
    np.testing.assert_array_equal(after[:2, 0], NOISE[2:4, 1])
    after = run("copy@c[0..3]->c[1..4]", NOISE)  # in turn, so that class 0 goes all the way
    for k in range(1, 5):
        np.testing.assert_array_equal(after[k, 0], NOISE[0, 0])


def test_generators_apply_to_each_class_of_a_range() -> None:
    after = run("softmax@c[0..2] . reduce:max@c[1..2]@4 . merge:neg@c[90..95]", NOISE)
    unchanged_but(NOISE, after, *[(c, 0) for c in (0, 1, 2)], (1, 4), (2, 4), *[(c, 0) for c in range(90, 96)])
    np.testing.assert_array_equal(floats(after, 93), -floats(NOISE, 93))


# --- quote and evaluate ---------------------------------------------------------------------------

EQUIVALENT = [
    ("quote@c01 . mark@c01 . evaluate@c01", "mark@c01"),
    ("quote@c01", "mark@c02 . mark@c02"),
    ("evaluate@c01 . mark@c02", "mark@c02"),
    ("quote@c01 . mark@c02 . evaluate@c01", "mark@c02"),
    # suspended terms run on what memory holds when they are evaluated
    ("quote@c01 . merge@c00[c02,c01] . mark@c02 . evaluate@c01", "mark@c02 . merge@c00[c02,c01]"),
    # reading a quoted place is not suspended
    ("quote@c01 . copy@c00->c01 . copy@c01->c02 . evaluate@c01", "copy@c01->c02 . copy@c00->c01"),
    # suspended terms keep their order
    ("quote@c01 . copy@c00->c01 . mark@c01 . evaluate@c01 . mark@c00", "copy@c00->c01 . mark@c01 . mark@c00"),
    # a term that writes two quoted places waits for both
    ("quote@c01 . quote@c02 . swap@c01<->c02 . evaluate@c01 . mark@c01 . evaluate@c02", "mark@c01 . swap@c01<->c02"),
    ("quote@c01 . quote@c02 . swap@c01<->c02 . mark@c02 . evaluate@c02 . evaluate@c01", "mark@c02 . swap@c01<->c02"),
    ("quote@c[1..2] . mark@c[1..3] . evaluate@c[1..2]", "mark@c3 . mark@c1 . mark@c2"),
    ("quote@c01@1 . mark@c01 . evaluate@c01@1", "mark@c01"),
    ("quote@c01 . quote@c01 . mark@c01 . evaluate@c01 . mark@c01", "mark@c01 . mark@c01"),
    ("(quote@c01 . mark@c01 . evaluate@c01) || mark@c02", "mark@c01 . mark@c02"),
    ("R+1@(quote@c01 . mark@c01 . evaluate@c01)", "mark@c25"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(EQUIVALENT)))
def test_quote_suspends_and_evaluate_forces(case: int) -> None:
    left, right = EQUIVALENT[case]
    np.testing.assert_array_equal(run(left, NOISE), run(right, NOISE))


# --- errors ---------------------------------------------------------------------------------------

ERRORS: list[tuple[str, tuple[int, int, int], str]] = [  # source, (line, column, length), part of the text
    ("", (1, 1, 1), "expected a generator or '(', but the circuit ends"),
    ("  ", (1, 1, 1), "the circuit ends"),
    ("mark", (1, 5, 1), "expected '@' between a generator and its target"),
    ("mark@", (1, 6, 1), "expected a class, but the circuit ends"),
    ("mark@c", (1, 7, 1), "expected '[' after c"),
    ("mark@x01", (1, 6, 3), "expected a class, but got 'x01'"),
    ("mark@c96", (1, 6, 3), "class 96 does not exist"),
    ("mark@c99999999999999999999", (1, 6, 21), "does not exist"),
    ("mark@c00@48", (1, 10, 2), "page 48 does not exist"),
    ("mark@c00@", (1, 10, 1), "expected a page after @"),
    ("mark@c00^1", (1, 10, 1), "expected '+' or '-' after ^"),
    ("mark@c00^+", (1, 11, 1), "expected a number after ^"),
    ("mark@c00^+1234567890", (1, 11, 10), "a number of 10 digits is too large"),
    ("mark@c[3..96]", (1, 11, 2), "class 96 does not exist"),
    ("mark@c[5..3]", (1, 6, 1), "the range from 5 to 3 is empty"),
    ("mark@c[5.3]", (1, 9, 1), "expected '..' between the ends of a range"),
    ("mark@c[c5..3]", (1, 8, 2), "expected a class number"),
    ("mark@c[5..7", (1, 12, 1), "expected ']' after a range"),
    ("frob@c00", (1, 1, 4), "there is no generator 'frob'"),
    ("mark:twice@c00", (1, 6, 5), "mark has no variant 'twice'"),
    ("merge:pow@c00[c01,c02]", (1, 7, 3), "known: add mul min max abs"),
    ("reduce:@c00", (1, 8, 1), "expected the name of a variant"),
    ("mark@c00->c01", (1, 1, 13), "write mark@c00"),
    ("copy@c00", (1, 1, 8), "write copy@c00->c01"),
    ("swap@c00->c01", (1, 1, 13), "write swap@c00<->c01"),
    ("merge@c00", (1, 1, 9), "write merge@c00[c01,c02]"),
    ("split:div@c00", (1, 1, 13), "write split@c00[c01,c02]"),
    ("merge@c00[c01]", (1, 14, 1), "expected ',' between the context and the destination"),
    ("merge@c00[c01,c02", (1, 18, 1), "expected ']' after the destination"),
    ("mark@c00 mark@c01", (1, 10, 4), "expected '.', '||' or the end, but got 'mark'"),
    ("mark@c00 .", (1, 11, 1), "expected a generator"),
    ("mark@c00 . . mark@c01", (1, 12, 1), "expected a generator"),
    ("mark@c00 .. mark@c01", (1, 10, 2), "got '..'"),
    ("(mark@c00", (1, 10, 1), "expected ')' to close the parenthesis"),
    ("mark@c00)", (1, 9, 1), "got ')'"),
    ("mark@c00 | mark@c01", (1, 10, 1), "parallel sides are joined by ||"),
    ("copy@c00<c01", (1, 9, 1), "swap joins its places by <->"),
    ("mark@c00 . é", (1, 12, 1), "does not belong in a circuit"),
    ("R1@mark@c00", (1, 1, 2), "write R+1 or R-1"),
    ("R@mark@c00", (1, 2, 1), "expected '+' or '-' after R"),
    ("T+@mark@c00", (1, 3, 1), "expected a number after T"),
    ("R+1 mark@c00", (1, 5, 4), "expected '@' after the transforms"),
    ("R+1", (1, 4, 1), "expected '@' after the transforms"),
    ("mark@c00 . R+1@mark@c01", (1, 12, 1), "only at the start of the circuit"),
    ("(~@mark@c01)", (1, 2, 1), "only at the start of the circuit"),
    ("mark@c00 .\n  mark@c01 .\n  frob@c02", (3, 3, 4), "there is no generator"),
    ("mark@c00 .\r\n\tmark@c97", (2, 7, 3), "class 97"),
    ("copy@c[0..3]->c[4..6]", (1, 15, 7), "3 classes cannot go with a range of 4"),
    ("copy@c[0..3]->c04", (1, 15, 3), "1 class cannot go with a range of 4"),
    ("swap@c00<->c[4..6]", (1, 6, 3), "1 class cannot go with a range of 3"),
    ("mark@c05 || mark@c05", (1, 13, 8), "c05 is written on one side of || and used on the other"),
    ("copy@c00->c01 || copy@c01->c02", (1, 18, 13), "c01 is written"),
    ("copy@c01->c02 || copy@c00->c01", (1, 18, 13), "c01 is written"),
    ("mark@c05@9 || (mark@c01 . mark@c02) || (mark@c03 . merge@c00[c05@9,c06])", (1, 52, 20), "c05@9 is written"),
    ("mark@c[0..9] || mark@c09", (1, 17, 8), "c09 is written"),
    ("R+1@(mark@c00 || mark@c00)", (1, 18, 8), "c24 is written"),
    ("mark@c00 || mark@c08~ || mark@c16", (1, 26, 8), "c16 is written"),
    ("quote@c01 . mark@c01", (1, 13, 8), "c01 is quoted and never evaluated"),
    ("quote@c01 . mark@c01 . (evaluate@c01 || mark@c01)", (1, 41, 8), "c01 is written"),
    ("quote@c01 . copy@c03->c01 . (mark@c03 || evaluate@c01)", (1, 42, 12), "c03 is written"),
    ("quote@c01@2 . mark@c01@2 . evaluate@c01", (1, 15, 10), "add . evaluate@c01@2"),
]  # fmt: skip


@of_each("case", range(len(ERRORS)))
def test_errors_have_spans(case: int) -> None:
    source, place, message = ERRORS[case]
    with pytest.raises(IsaError) as caught:
        translate_circuit(source)
    span = caught.value.span
    assert span is not None
    assert message in str(caught.value)
    assert (span.line, span.column, span.length) == place
    assert span.file == "<circuit>"
    assert span.text == source.split("\n")[span.line - 1].rstrip("\r")


@pytest.mark.parametrize(
    ("source", "element", "message"),
    [
        ("softmax@c00", Type.I32, "softmax is not defined on I32"),
        ("merge:sqrt@c00", Type.U8, "sqrt is not defined on U8"),
        ("merge:relu@c00", Type.U8, "relu is not defined on U8"),
        ("mark@c00", Type.I4096, "does not fit a page"),
    ],
)
def test_element_types_that_do_not_serve(source: str, element: Type, message: str) -> None:
    with pytest.raises(IsaError, match=message):
        translate_circuit(source, element)


def test_a_circuit_is_text() -> None:
    with pytest.raises(IsaError, match="a circuit is text"):
        translate_circuit(b"mark@c00")  # type: ignore[arg-type]


def test_nesting_is_bounded() -> None:
    within = "(" * NESTING_LIMIT + "mark@c00" + ")" * NESTING_LIMIT
    assert translate_circuit(within) == translate_circuit("mark@c00")
    with pytest.raises(IsaError, match="nested more than") as caught:
        translate_circuit("(" * 100_000)
    assert caught.value.span is not None
    assert caught.value.span.column == NESTING_LIMIT + 1


def test_long_circuits_take_time_in_proportion() -> None:
    program = translate_circuit(" . ".join(["mark@c01 . merge@c00[c01,c02]"] * 3_000))
    assert len(program) > 3_000


def test_instructions_carry_the_span_of_their_term() -> None:
    program = translate_circuit("mark@c00 .\n merge@c00[c01,c02]")
    spans = {(i.op.name, i.span.line, i.span.column) for i in program.instructions if i.span is not None}
    assert ("XOR", 1, 1) in spans
    assert ("ParallelMapBinary", 2, 2) in spans


def test_doctests() -> None:
    assert doctest.testmod(circuit_module).failed == 0


# --- fuzz -----------------------------------------------------------------------------------------

SEEDS = [
    "R+1 T-2 ~@(merge:mul@c00[c01^+3,c02~@7] . mark@c[0..9]) || copy@c90->c[91..93] || swap@c80@1<->c81",
    "quote@c01 . merge@c00[c02,c01] . reduce:max@c02@4 . evaluate@c01 . softmax@c[3..5]",
    "mark@c00",
]
PIECES = ["mark", "merge", "copy", "quote", "evaluate", "c", "c00", "c95", "c96", "@", ".", "..", "||", "|", "(", ")",
          "[", "]", ",", "->", "<->", "^", "~", "+", "-", ":", "1", "47", "9" * 30, " ", "\n", "\0", "é", "R", "T", "²",
          "\u2028", "\ud800"]  # fmt: skip


def mutate(rng: random.Random, text: str) -> str:
    for _ in range(rng.randint(1, 4)):
        start = rng.randrange(len(text) + 1)
        text = text[:start] + rng.choice(PIECES) * rng.randint(0, 2) + text[start + rng.randint(0, 4) :]
    return text


def test_mutated_circuits_never_crash() -> None:
    rng = random.Random(22)
    translated = 0
    for k in range(10_000):
        source = mutate(rng, SEEDS[k % 3]) if k % 10 else "".join(rng.choices(PIECES, k=rng.randint(0, 60)))
        try:
            program = translate_circuit(source)
        except IsaError as error:
            str(error)
        else:
            assert isinstance(program, Program)
            translated += 1
    assert 300 < translated < 9_000


def test_translated_fuzz_is_legal() -> None:
    rng = random.Random(23)
    for _ in range(300):
        try:
            program = translate_circuit(mutate(rng, SEEDS[rng.randrange(3)]))
        except IsaError:
            continue
        validate(program)
