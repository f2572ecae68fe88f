"""The passes between a procedure and its derivative's code, each by itself and at its edges."""

from __future__ import annotations

import math
import random
import re
from itertools import combinations

import pytest
from programs_fast import PROGRAMS
from typed_programs import parse

from eshkol.calculus import cfg, ir
from eshkol.calculus.abstract import NIL, UNSPECIFIED, Fields, Known, Leaf, NotFast
from eshkol.calculus.emit import SweepModule, SweepWriter
from eshkol.calculus.exactness import ADRIFT, ROUNDED, SAME, check
from eshkol.calculus.factors import parsed
from eshkol.calculus.ir import F64, I1, I64, Block, TypedFunction, TypedValue
from eshkol.calculus.plan import _smallest_cut
from eshkol.calculus.reverse import gradient
from eshkol.calculus.writer import ProgramWriter, as_list, fixed_list, list_size, listed
from eshkol.llvm.text import double

# ---- what is recorded ------------------------------------------------------------------------------------------------

Graph = dict[TypedValue, list[TypedValue]]


def random_graph(rng: random.Random) -> tuple[list[TypedValue], Graph, set[TypedValue]]:
    """Values, who uses them, and those that are needed; users come after what they use."""
    values = [TypedValue(F64, str(k)) for k in range(rng.randint(1, 8))]
    dense = rng.choice((0.3, 0.5))
    users: Graph = {v: [u for u in values[k + 1 :] if rng.random() < dense] for k, v in enumerate(values)}
    return (
        [v for v in values[: len(values) // 2] if rng.random() < 0.7],
        users,
        {v for v in values[len(values) // 3 :] if rng.random() < 0.5},
    )


def beyond(cut: frozenset[TypedValue], users: Graph, wanted: set[TypedValue]) -> set[TypedValue]:
    """From where what is wanted is reached without passing the cut."""
    found: set[TypedValue] = set()
    for value in reversed(users):
        if value not in cut and (value in wanted or any(user in found for user in users[value])):
            found.add(value)
    return found


def test_what_is_recorded_is_a_smallest_cut_and_the_last_one() -> None:
    rng = random.Random(7)
    sizes = set()
    for _ in range(150):
        sources, users, wanted = random_graph(rng)
        for size in range(len(users) + 1):
            cuts = [
                (len(rest), [v for v in users if v in cut])
                for cut in map(frozenset, combinations(users, size))
                if not (rest := beyond(cut, users, wanted)).intersection(sources)
            ]
            if cuts:
                break
        assert _smallest_cut(sources, users, wanted) == min(cuts, key=lambda found: found[0])[1]
        sizes.add(size)
    assert sizes >= {0, 1, 2, 3}


# ---- functions that have no derivative -------------------------------------------------------------------------------

NOT_DERIVED = {
    "a loop with several entries": """
function main -> f64
b0(%x: f64 varies, %i: i64):
  %c: i1 = icompare lt %i, %i
  branch %c one() other()
one():
  %d: i1 = icompare gt %i, %i
  branch %d other() done()
other():
  jump one()
done():
  return %x
""",
    "never returns": """
function main -> f64
b0(%x: f64 varies):
  jump loop(%x)
loop(%y: f64):
  %z: f64 = math sin %y
  jump loop(%z)
""",
    "no rule for nothing": """
function main -> f64
b0(%x: f64 varies):
  %y: f64 = math nothing %x
  return %y
""",
    "exact of a variable": """
function main -> f64
b0(%x: f64 varies):
  %n: i64 = ftoi %x
  %y: f64 = itof %n
  return %y
""",
    "of one number": """
function main -> f64, f64
b0(%x: f64 varies):
  return %x, %x
""",
}


@pytest.mark.parametrize("why", NOT_DERIVED)
def test_what_has_no_derivative_is_told(why: str) -> None:
    with pytest.raises(NotFast, match=why):
        gradient(parse(NOT_DERIVED[why]))


def test_long_programs_are_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    program = parse(PROGRAMS["functions"][0])
    size = sum(len(block.body) + 1 for block in program.main.blocks)
    monkeypatch.setattr(cfg, "LARGEST", size)
    cfg.prepared(program)
    monkeypatch.setattr(cfg, "LARGEST", size - 1)
    with pytest.raises(NotFast, match="long"):
        cfg.prepared(program)


# ---- factors ---------------------------------------------------------------------------------------------------------

FACTORS = {  # as LLVM text of x and y
    "1/2": [double(0.5)], "+inf.0": [double(math.inf)], "-inf.0": [double(-math.inf)], "y": ["y"],
    "#t": [double(1.0)], "#f": [double(0.0)],
    "(+ 1/2 1/4)": [double(0.75)], "(- 1/2 1/4)": [double(0.25)], "(* 1/2 1/4)": [double(0.125)],
    "(/ 1 4)": [f"fdiv double {double(1.0)}, {double(4.0)}"],
    "(if (< x y) x y)": ["fcmp olt double x, y", "select i1 1, double x, double y"],
    "(if (not (= x y)) x y)": ["fcmp oeq double x, y", "xor i1 1, true", "select i1 2, double x, double y"],
    "(and (<= x y) (> x y))": ["fcmp ole double x, y", "fcmp ogt double x, y", "and i1 1, 2"],
    "(or (>= x y) (= y x))": ["fcmp oge double x, y", "fcmp oeq double y, x", "or i1 1, 2"],
    "(if (< x y) x x)": ["fcmp olt double x, y", "x"],
    **{f"(if ({name} {number} 2) x y)": [chosen]
       for name, found in {"=": "yxy", "<": "xyy", "<=": "xxy", ">": "yyx", ">=": "yxx"}.items()
       for number, chosen in enumerate(found, 1)},
}  # fmt: skip


@pytest.mark.parametrize("text", FACTORS)
def test_factors_as_code(text: str) -> None:
    writer = SweepWriter(SweepModule(), 1)
    result = writer.tree(parsed(text), lambda name: name)
    written = [line.strip().partition(" = ")[2] for line in writer.lines]
    found = re.sub(r"%[\w.]*?(\d+)", r"\1", "\n".join(written)).split("\n") if written else []
    assert found + ([] if result.startswith("%") else [result]) == FACTORS[text]


def test_nan_is_a_factor() -> None:
    found = parsed("+nan.0")
    assert isinstance(found, float)
    assert math.isnan(found)


# ---- doubles that stand for exact numbers ----------------------------------------------------------------------------

# Bodies of a function of an integer %i and a double %x, and whether it may decide as it does. Constants that are exact
# numbers are %third and %sixth, which are rounded, and %two, %three and %zero, which are the same.
DECIDED = {
    "%r: f64 = math floor %third": True,  # whoever writes it knows what it is
    "%r: f64 = math floor %x": True,
    "%a: f64 = math - %third\n%r: f64 = math floor %a": False,
    "%a: f64 = math - %x, %third\n%r: f64 = math floor %a": True,  # Scheme makes a double of the ratio
    "%a: f64 = math + %third, %sixth\n%r: f64 = math ceiling %a": False,
    "%a: f64 = math + %third, %sixth\n%b: f64 = math sin %a\n%r: f64 = math round %b": False,
    "%a: f64 = math + %third, %sixth\n%r: f64 = math sin %a": True,
    "%a: f64 = math sin %third\n%r: f64 = math truncate %a": True,
    "%a: f64 = math * %third, %x\n%r: f64 = math floor %a": True,
    "%a: f64 = math square %third\n%r: f64 = math floor %a": False,
    "%a: f64 = math square %two\n%r: f64 = math floor %a": True,
    "%a: f64 = math expt %third, %two\n%r: f64 = math floor %a": False,
    "%a: f64 = math * %two, %three\n%r: f64 = math floor %a": True,
    "%a: f64 = math / %two, %three\n%r: f64 = math floor %a": False,
    "%a: f64 = math / %three, %two\n%r: f64 = math floor %a": True,
    "%a: f64 = math / %two, %zero\n%r: f64 = math floor %a": False,
    "%a: f64 = math / %x, %three\n%r: f64 = math floor %a": True,
    "%f: f64 = itof %i\n%a: f64 = math / %f, %three\n%r: f64 = math floor %a": False,
    "%f: f64 = itof %i\n%a: f64 = math / %f, %two\n%r: f64 = math floor %a": True,
    "%f: f64 = itof %i\n%a: f64 = math / %two, %f\n%r: f64 = math floor %a": False,
    "%a: f64 = math abs %third\n%r: f64 = math floor %a": False,
    "%a: f64 = math max %third, %x\n%r: f64 = math sin %a": True,
    "%a: f64 = math max %x, %third\n%r: f64 = math floor %a": False,
    "%a: f64 = math min %x, %third\n%b: f64 = math * %a, %two\n%r: f64 = math floor %b": False,
    "%a: f64 = math min %x, %two\n%b: f64 = math / %a, %three\n%r: f64 = math floor %b": False,
    "%a: f64 = math - %third\n%r: f64 = math max %a, %x": False,
    "%a: f64 = math - %third\n%r: f64 = math min %a, %x": False,
    "%a: f64 = math - %third\n%r: f64 = math abs %a": True,
    "%a: f64 = math - %third\n%c: i1 = compare lt %a, %x\n%r: f64 = math sin %x": False,
    "%a: f64 = math - %third\n%n: i64 = ftoi %a\n%r: f64 = itof %n": False,
    "%n: i64 = ftoi %x\n%r: f64 = itof %n": True,
    "%w: array(f64) = array_new %i, %third\n%a: f64 = array_get %w, %i\n%r: f64 = math floor %a": False,
    "%w: array(f64) = array_new %i, %x\n%a: f64 = array_get %w, %i\n%r: f64 = math floor %a": True,
    "%w: array(f64) = array_new %i, %x\narray_set %w, %i, %third\n%a: f64 = array_get %w, %i\n"
    "%r: f64 = math floor %a": False,
    "%e: null = constant None\n%l: cell(f64) = cell_new %third, %e\n%a: f64 = cell_value %l\n"
    "%r: f64 = math floor %a": False,
    "%w: array(f64) = array_new %i, %third\n%e: null = constant None\n%l: cell(f64) = cell_new %x, %e\n"
    "%a: f64 = cell_value %l\n%r: f64 = math floor %a": True,
    "jump next(%third)\nnext(%a: f64):\n%r: f64 = math floor %a": False,
    "jump next(%x)\nnext(%a: f64):\n%r: f64 = math floor %a": True,
    "jump loop(%x)\nloop(%a: f64):\n%r: f64 = math floor %a\n%c: i1 = compare lt %x, %r\n"
    "branch %c loop(%third) done()\ndone():": False,
    "%a: f64 = call same %third\n%r: f64 = math floor %a": False,
    "%a: f64 = call same %x\n%r: f64 = math floor %a": True,
    "%r: f64 = call floored %third": False,
    "%r: f64 = call floored %x": True,
    "%a: f64 = call drifted %x\n%r: f64 = math floor %a": False,
}
FRAME = """
function main -> f64
b0(%i: i64, %x: f64):
  %third: f64 = constant 0.3333333333333333
  %sixth: f64 = constant 0.16666666666666666
  %two: f64 = constant 2.0
  %three: f64 = constant 3.0
  %zero: f64 = constant 0.0
BODY
  return %r

function same -> f64
b0(%a: f64):
  return %a

function floored -> f64
b0(%a: f64):
  %b: f64 = math floor %a
  return %b

function drifted -> f64
b0(%a: f64):
  %third: f64 = constant 0.3333333333333333
  %b: f64 = math - %third
  return %b
"""
NEAR = {0.3333333333333333: ROUNDED, 0.16666666666666666: ROUNDED, 2.0: SAME, 3.0: SAME, 0.0: SAME}


@pytest.mark.parametrize("body", DECIDED)
def test_what_is_decided_by_a_ratio_is_refused(body: str) -> None:
    program = parse(FRAME.replace("BODY", body))
    used = [f for f in program.functions if f is program.main or f"call {f.name}" in body]
    made = [item for f in used for item in f.instructions() if item.literal is not None]
    try:
        check(used, {item.result: NEAR[item.literal] for item in made})
    except NotFast:
        assert not DECIDED[body]
    else:
        assert DECIDED[body]


def test_what_has_drifted_stays_so() -> None:
    assert SAME < ROUNDED < ADRIFT


# ---- values where others are awaited ---------------------------------------------------------------------------------


@pytest.fixture
def writer() -> ProgramWriter:
    return ProgramWriter(TypedFunction("main", [Block("start")]))


def leaf(kind: ir.Type) -> Leaf:
    return Leaf(TypedValue(kind))


PAIR, VECTOR = Fields("pair", (Known(1.5), Known(NIL))), Fields("vector", (Known(1.5),), "here")
REFUSED = [
    *((F64, a) for a in (Known(True), Known(NIL), leaf(I1), leaf(ir.cell(F64)), PAIR, VECTOR)),
    *((I64, a) for a in (Known(True), Known(1.5), Known(1 << 63), Known(-(1 << 63) - 1), leaf(F64), leaf(I1), PAIR)),
    *((I1, a) for a in (Known(1), Known(NIL), Known(UNSPECIFIED), leaf(I64), PAIR)),
    *((ir.array(F64), a) for a in (Known(NIL), leaf(ir.cell(F64)), leaf(ir.array(I64)), PAIR, Fields("vector", ()))),
    *((ir.cell(F64), a) for a in (Known(1.5), leaf(ir.array(F64)), leaf(ir.cell(I64)), VECTOR)),
    *((ir.pairs(F64), a) for a in (PAIR, leaf(ir.cell(F64)), leaf(ir.pairs(I64)))),
    (ir.vector(F64), Known(NIL)),
    (ir.vector(F64), VECTOR),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_other_values_are_refused(writer: ProgramWriter, number: int) -> None:
    kind, value = REFUSED[number]
    with pytest.raises(NotFast):
        writer.fit_leaf(value, kind)


TAKEN = [
    (F64, leaf(F64), ""), (F64, leaf(I64), "itof"), (F64, Known(1), "constant 1.0"), (F64, Known(1.5), "constant 1.5"),
    (I64, leaf(I64), ""), (I64, Known((1 << 63) - 1), f"constant {(1 << 63) - 1}"),
    (I64, Known(-(1 << 63)), f"constant {-(1 << 63)}"),
    (I1, leaf(I1), ""), (I1, Known(True), "constant True"), (I1, Known(False), "constant False"),
    (ir.cell(F64), Known(NIL), "constant"), (ir.pairs(F64), Known(NIL), "constant"),
    (ir.cell(F64), leaf(ir.cell(F64)), ""), (ir.pairs(F64), leaf(ir.pairs(F64, 3)), ""),
    (ir.array(F64), leaf(ir.array(F64)), ""), (ir.vector(F64), leaf(ir.vector(F64)), ""),
    (ir.cell(F64), PAIR, "constant, constant 1.5, cell_new"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(TAKEN)))
def test_values_become_what_is_awaited(writer: ProgramWriter, number: int) -> None:
    kind, value, wanted = TAKEN[number]
    found = writer.fit_leaf(value, kind)
    written = [f"{i.operation}{'' if i.literal is None else f' {i.literal}'}" for i in writer.block.body]
    assert ", ".join(written) == wanted
    assert found is (writer.block.body[-1].result if wanted else value.value)


def test_lists_whose_length_is_known() -> None:
    for items in ([], [Known(1)], [Known(1), leaf(F64), PAIR]):
        made = as_list(items)
        assert list_size(made) == len(items)
        assert fixed_list(made)
        assert list(listed(made)) == items
    assert list_size(Fields("pair", (Known(1), leaf(ir.pairs(F64, 3))))) == 4
    assert list_size(leaf(ir.pairs(F64, 2))) == 2
    like_a_pair = (Known(1.5), Known(NIL))
    for end in (Known(2), leaf(ir.pairs(F64)), leaf(F64), *(Fields(k, like_a_pair) for k in ("vector", "record"))):
        for other in (end, Fields("pair", (Known(1), end))):
            assert list_size(other) is None
            assert not fixed_list(other)
            with pytest.raises(NotFast):
                list(listed(other))
