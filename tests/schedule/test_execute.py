"""Graphs computed: leaves, views, empty results, several results, control flow, errors, and what the switches do."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import eshkol as ek
from eshkol.atlas.machines import CORES
from eshkol.errors import IndexOutOfRange, NotANumberError, TensorError, TraceError
from eshkol.graph import interpret
from eshkol.graph.control import cond, scan
from eshkol.graph.function import trace
from eshkol.graph.node import Current, Scope, buffer, constant, host_array, make, mark, placeholder, settle, user_site
from eshkol.ops import dtypes
from eshkol.ops import elementwise as ew
from eshkol.ops.indexing import take
from eshkol.ops.movement import expand, permute, reshape
from eshkol.ops.reductions import sum_
from eshkol.ops.row import HOST, Aval, Op, Push
from eshkol.ops.shapes import same
from eshkol.schedule import cache
from eshkol.schedule.check.switch import check
from eshkol.schedule.kernels.lower import lowered
from eshkol.schedule.run import execute
from eshkol.schedule.run.execute import check_nan, realize
from eshkol.schedule.run.resident import Resident
from eshkol.tensors.devices import current_backend, open_backend
from eshkol.tensors.devices import device as use_backend

BACKENDS = ("reference", "cpu")


@pytest.fixture(params=BACKENDS)
def machine(request):
    return open_backend(request.param)


def node(values, dtype="float32"):
    wanted = dtypes.of(dtype)
    return buffer(np.asarray(values, wanted.numpy), wanted)


def agree(nodes, machine) -> list[np.ndarray]:
    wanted = interpret.evaluate(nodes)
    got = realize(nodes, machine)
    for g, w in zip(got, wanted, strict=True):
        assert g.shape == w.shape
        assert g.dtype == w.dtype
        np.testing.assert_allclose(g.astype(float), w.astype(float), rtol=1e-6, atol=1e-6)
    return got


# --- shapes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((3, 4), (4,)), ((3, 1), (1, 4)), ((), (2, 3)), ((2, 1, 3, 1), (4, 1, 5)), ((1, 1), (2,)), ((0, 3), (1, 3)),
        ((2, 3, 4), (3, 1)),
    ],
)  # fmt: skip
def test_broadcasting(one, other, machine):
    x, y = (node(np.random.default_rng(1).normal(size=s)) for s in (one, other))
    agree([x - y, y - x], machine)


def test_many_broadcast_patterns_on_the_reference():
    rng = np.random.default_rng(2)
    for _ in range(60):
        shape = rng.integers(1, 4, rng.integers(0, 5))
        cut = tuple(int(n) if rng.random() < 0.5 else 1 for n in shape)[rng.integers(0, len(shape) + 1) :]
        agree([expand(node(rng.normal(size=cut)), tuple(map(int, shape)))], open_backend("reference"))


def test_inputs_of_any_layout(machine):
    base = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    unaligned = np.frombuffer(b"x" + base.tobytes(), np.uint8)[1:].view(np.float32).reshape(2, 3, 4)
    layouts = [base.transpose(2, 0, 1), base[:, ::-1, ::2], np.broadcast_to(base[0, 0], (5, 4)), unaligned]
    agree([buffer(a, dtypes.float32) + 1 for a in layouts], machine)
    agree([reshape(buffer(a, dtypes.float32), (-1,)) for a in layouts], machine)


def test_empty_results_launch_nothing(machine, monkeypatch):
    monkeypatch.setattr(machine, "execute", lambda *given: pytest.fail("a launch"))
    x = node(np.zeros((0, 3)))
    got = realize([x + 1, permute(x, (1, 0)), sum_(x, axis=1)], machine)
    assert [g.shape for g in got] == [(0, 3), (3, 0), (0,)]


def test_sums_of_nothing(machine):
    x = node(np.zeros((0, 3)))
    agree([sum_(x), sum_(x, axis=0), sum_(node(np.zeros((2, 0)), "int8"), axis=1)], machine)


def test_views_share_memory():
    x = node(np.zeros((2, 3)))
    (got,) = realize([reshape(mark(x, Scope("grad", "test")), (3, 2))], open_backend("cpu"))
    assert np.shares_memory(got, x.data)


def test_constants(machine):
    for dtype in dtypes.ALL:
        value = 1 if dtype.is_bool else 3
        x = constant(value, dtype)
        (got,) = realize([x], machine)
        assert got.dtype == dtype.numpy
        (got,) = realize([expand(x, (2,))], machine)
        assert got.tolist() == [value, value]
    agree([expand(constant(v, dtypes.float64), (2,)) for v in (-0.0, np.inf, 1e-320)], machine)


# --- how kernels are kept ---------------------------------------------------------------------------


def test_one_program_serves_all_sizes():
    programs = set()
    for shape in ((2,), (3, 4), (1,), (5, 1, 2), ()):
        x, y, one = node(np.ones(shape)), node(np.ones(shape)), node(3.0)
        for made in (x + y, x + one, x + 2.5, x + 7.0):
            if shape:
                programs.add(id(lowered(made, CORES).program))
            agree([made], open_backend("reference"))
    assert len(programs) <= 4  # two arrays, an array and a number, each of a single element too


def test_contiguous_reads_are_by_lane():
    text = str(lowered(node(np.ones((2, 3))) + node(np.ones((2, 3))), CORES).program)
    assert "[x0+r255*4]" in text
    assert "[x1+r255*4]" in text
    assert "[out+r255*4]" in text
    assert "DIV" not in text


def test_kernels_are_bounded(monkeypatch):
    monkeypatch.setattr(cache, "KEPT", 8)
    kept = cache.Cache()
    for k in range(100):
        kept.keep(k, k)
    assert len(kept) <= 8
    assert 99 in kept


def test_intermediates_are_freed_and_results_kept():
    machine = open_backend("cpu")
    x = node(np.ones(1 << 20))
    alive = len(machine._buffers)
    last = (x + 1) * 2
    (middle, _) = last.inputs
    seen = weakref.ref(middle)
    del middle
    realize([last], machine)
    assert seen() is None, "what nobody refers to is gone"
    assert last.data[0] == 4
    assert len(machine._buffers) == alive
    memory = weakref.ref(last.data.base)
    del last
    gc.collect()
    assert memory() is None


def test_what_is_used_elsewhere_keeps_its_data(machine):
    middle = node([1.0]) + 1
    realize([middle * 2], machine)
    assert host_array(middle).tolist() == [2.0], "a name refers to it"
    inner = [node([2.0]) * 3]
    later = inner[0] - 1
    seen = weakref.ref(inner.pop())
    realize([seen() * 2], machine)
    assert host_array(seen()).tolist() == [6.0], "a graph that is not computed yet refers to it"
    assert realize([later], machine)[0].tolist() == [5.0]


def test_computed_values_let_go_of_their_history(machine):
    x = node([1.0])
    first = weakref.ref(x)
    for _ in range(3):
        x = x + 1
        realize([x], machine)
    gc.collect()
    assert first() is None
    assert not x.inputs
    assert host_array(x).tolist() == [4.0]


def test_history_stays_while_a_derivative_may_be_asked_for(machine):
    scope = Scope("grad", "test")
    y = mark(node([1.0]), scope) * 2
    realize([y], machine)
    assert y.inputs
    scope.open = False
    scope.kept = True
    settle(y)
    assert y.inputs
    scope.kept = False
    settle(y)
    assert not y.inputs


def test_reused_memory_is_nobody_elses():
    machine = open_backend("cpu")
    x = node(np.arange(4.0))
    first = realize([(x + 1) * 2], machine)[0]
    seen = first.copy()
    for k in range(20):
        realize([(x + float(k)) * 3 - 1], machine)
    np.testing.assert_array_equal(first, seen)


# --- several results, control flow ------------------------------------------------------------------


def _halves(e, a, r, write, x):
    low, high = write
    value = x(r)
    low(r, value)
    high(r, value * value)


TWO = Op(
    name="two", doc="x and its square.", function=None, names=("x",), infer=lambda a, x: (Aval(x.shape, x.dtype),) * 2,
    reference=lambda a, x: (x, x * x), lower=Push(lambda a, x: x.shape, _halves),
)  # fmt: skip


def test_several_results(machine):
    one, square = node([1.0, 2.0, 3.0]).apply(TWO, (node([1.0, 2.0, 3.0]),), None)
    agree([square, one + square], machine)
    _, alone = node([1.0]).apply(TWO, (node([4.0]),), None)
    agree([alone], machine)


def _loop(length):
    def body(carry, element):
        return [carry * 0.5 + element, carry + 1]

    aval = Aval((3,), dtypes.float32)
    function, captured = trace(body, [aval, aval], "body")
    assert not captured
    return scan(function, [node([1.0, 2.0, 3.0])], [node(np.ones((length, 3)))], [], length)


def test_scan(machine):
    agree(list(_loop(5)), machine)


def test_cond(machine):
    aval = [Aval((2,), dtypes.float32)]
    true, false = (trace(code, aval, "branch")[0] for code in (lambda x: [x + 1], lambda x: [x * x]))
    x = node([3.0, 4.0])
    for truth in (True, False):
        agree(list(cond(node(truth, "bool"), true, false, [x])), machine)


def test_a_graph_is_compiled_once_for_its_structure(monkeypatch):
    made = []
    compiled = execute.Compiled
    monkeypatch.setattr(execute, "Compiled", lambda *given: made.append(1) or compiled(*given))
    x = np.arange(7, dtype=np.float32)
    for step in range(5):  # the second number that is seen in a place makes an input of the constant there
        (got,) = realize([ew.tanh(buffer(x, dtypes.float32) * (0.125 + step)) - 2], open_backend("cpu"))
        np.testing.assert_allclose(got, np.tanh(x * (0.125 + step)) - 2, rtol=1e-5)
    assert len(made) == 2
    for _ in range(3):  # so are bodies of loops, though every loop has its own
        realize(list(_loop(50)), open_backend("cpu"))
    assert len(made) == 3


# --- errors -----------------------------------------------------------------------------------------


@pytest.fixture
def here():
    Current.site = user_site()
    yield
    Current.site = None


def test_a_value_that_is_not_known(machine):
    x = placeholder(Aval((2,), dtypes.float32), Scope("trace", "test"))
    with pytest.raises(TraceError, match="not known yet"):
        realize([x + 1], machine)


def later(data, dtype):
    """Data that is not computed yet: what is known is refused before it is used."""
    return ew.bitwise_or(node(data, dtype), node(np.zeros_like(data), dtype))


@pytest.mark.usefixtures("here")
def test_integers_divided_by_zero(machine):
    made = ew.remainder(node([1, 2], "int32"), later([1, 0], "int32"))
    with pytest.raises(
        TensorError, match=r"remainder\(int32\[2\], int32\[2\]\): an integer is divided by zero"
    ) as found:
        realize([made], machine)
    assert found.value.span.file.endswith(".py")
    assert "where()" in found.value.hint


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint64", "uint8"])
def test_an_index_out_of_range(dtype, machine):
    x = node(np.arange(3.0))
    with pytest.raises(IndexOutOfRange, match=r"take.*extent 3") as found:
        realize([take(x, later([0, 3], dtype), axis=0)], machine)
    assert found.value.hint == "indices are -3 to 2"
    assert realize([take(x, node([2, 0], dtype), axis=0)], machine)[0].tolist() == [2.0, 0.0]


def test_negative_and_huge_indices(machine):
    x = node(np.arange(3.0))
    assert realize([take(x, node([-1, -3], "int16"), axis=0)], machine)[0].tolist() == [2.0, 0.0]
    for wrong, dtype in ((-4, "int64"), (2**64 - 1, "uint64"), (2**32, "int64"), (-(2**63), "int64")):
        with pytest.raises(IndexOutOfRange):
            realize([take(x, later([wrong], dtype), axis=0)], machine)


def test_what_fails_on_the_host_is_explained():
    def fail(a, x):
        raise np.linalg.LinAlgError("Singular matrix")

    op = Op(name="broken", doc="Fails.", function=None, names=("x",), infer=same(), reference=fail, lower=HOST)
    with pytest.raises(TensorError, match=r"broken\(float32\[2, 2\]\): Singular matrix"):
        realize([make(op, (node(np.zeros((2, 2))),), None)], open_backend("cpu"))


def test_a_machine_is_usable_after_an_error(machine):
    with pytest.raises(TensorError):
        realize([ew.remainder(node([1], "int32"), node([0], "int32"))], machine)
    agree([node([1.0]) + 1], machine)


# --- switches ---------------------------------------------------------------------------------------


def test_check_nan(machine):
    zero, big, wrong = node([0.0, 1.0]), node([3e38]), node([np.nan])
    with check_nan():
        with pytest.raises(NotANumberError, match=r"log\(float32\[2\]\) gave infinity"):
            realize([ew.log(zero) + 1], machine)
        with pytest.raises(NotANumberError, match=r"sqrt.*NaN"):
            realize([ew.sqrt(zero - 1)], machine)
        with pytest.raises(NotANumberError, match="mul"):
            realize([big * 2], machine)
        realize([wrong + 1, zero + np.inf], machine)  # it was there before
    realize([ew.log(zero)], machine)


def test_the_verifier_finds_a_wrong_node():
    check()
    x = node([1.0, 2.0])
    agree([ew.exp(x) + 1], open_backend("reference"))
    wrong = x + 5
    wrong.shape = (3,)
    with pytest.raises(TensorError, match="its rule says"):
        realize([wrong], open_backend("reference"))
    mixed = make(ew.add, (x, node([1, 2], "int32")), None)
    with pytest.raises(TensorError, match="met in one dtype"):
        realize([mixed], open_backend("reference"))


def test_dump(monkeypatch, capsys):
    monkeypatch.setenv("ESHKOL_DUMP", "lower")
    realize([permute(node(np.zeros((7, 5, 3))), (2, 0, 1))], open_backend("reference"))
    assert '.program "permute"' in capsys.readouterr().err


def test_backends_are_opened_once():
    assert open_backend("cpu") is open_backend("cpu") is current_backend()
    with use_backend("reference") as found:
        assert current_backend() is found is open_backend("reference")
    assert current_backend().name == "cpu"


@pytest.mark.parametrize("rows", [1, 2, 3, 4])
def test_rows_share_indices_however_many_there_are(rows):
    """As many indices as rows are not one index for each row."""
    x, column = np.arange(rows * 5.0).reshape(rows, 5), -np.arange(1.0, rows + 1)[:, None]
    places = np.array([0, 2, 4])
    changed = ek.tensor(x)
    changed[:, places] = ek.tensor(column)
    wanted = x.copy()
    wanted[:, places] = column
    np.testing.assert_array_equal(changed.numpy(), wanted)
    np.testing.assert_array_equal(ek.tensor(x)[:, places].numpy(), x[:, places])
    own = ek.take_along_axis(ek.tensor(x), ek.tensor(np.arange(rows)[:, None] % 5), 1)  # here each has its own
    np.testing.assert_array_equal(own.numpy(), np.take_along_axis(x, np.arange(rows)[:, None] % 5, 1))


@pytest.mark.parametrize("device", ["cpu", "blocks"])
@pytest.mark.parametrize("shape", [(3,), (4, 3), (2, 40)])
def test_what_an_output_held_for_later_loops_is_not_read_after_it(device, shape):
    """A dear value lies in an output until that is written; an element that is picked afterwards is computed again."""
    rng = np.random.default_rng(0)
    x, labels = rng.standard_normal(shape), rng.integers(0, shape[-1], shape[:-1])

    def loss(a, labels, apart):
        found = ek.cross_entropy(ek.sin(a) * 1.8, labels)
        found = found.clone() if apart else found  # then it is stored beside what the gradient needs of the softmax
        return found * found

    with ek.device(device):
        given, right = ek.tensor(x), ek.tensor(labels)
        apart, together = (ek.grad(lambda a, how=how: loss(a, right, how))(given).numpy() for how in (True, False))
    np.testing.assert_allclose(apart, together, rtol=1e-10)


def test_the_host_has_values_as_they_lie_in_order():
    turned = np.arange(6.0).reshape(2, 3).T
    found = Resident.of(turned, dtypes.float64, open_backend("cpu")).host()
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, turned)
