"""Every row of the op table under each of its Scheme names, called through Scheme with the row's own samples."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from op_harness import arguments, has_negative, refilled, rng_of

import eshkol as ek
from batches import of_each
from eshkol.bindings import row_library
from eshkol.bindings.names import names
from eshkol.bindings.rows import LISTED
from eshkol.bindings.values import Keyword, Symbol, Values
from eshkol.errors import SchemeError
from eshkol.graph import interpret
from eshkol.ops import TABLE, dtypes
from eshkol.ops.row import Op, Sample
from eshkol.session import SessionThread
from eshkol.tensors.functions import FUNCTIONS

NAMES = names()
KINDS = {"bool": dtypes.bool_, "int": dtypes.int64, "float": dtypes.float32, "complex": dtypes.complex64}
BY_PLACE = {
    *("getitem", "setitem"),  # tested below: Python's slices are nothing that Scheme has
    # tested in scheme/tensors/habits.esk and scheme/seeds: weights are turned, and the whole is repeated
    *("multi_head_attention", "multi_head_self_attention", "repeat"),
}


@cache
def scheme() -> Callable[..., Any]:
    """A procedure of Scheme that calls another by its name."""
    table = " ".join(f"(cons '{name} {name})" for name in NAMES)
    ek.eval(f"(define rows-by-name (list {table}))")
    return ek.eval("(lambda (name arguments) (apply (cdr (assq name rows-by-name)) arguments))")


def through_scheme(name: str, args: list[Any], given: dict[str, Any]) -> Any:
    words = [x for key, value in given.items() for x in (Keyword(key.replace("_", "-")), value)]
    return scheme()(Symbol(name), [*args, *words])


def tensors(args: list[Any]) -> list[Any]:
    def one(x: Any) -> Any:
        if isinstance(x, np.ndarray):
            return ek.from_numpy(x)
        return [one(y) for y in x] if isinstance(x, list) else x

    return [one(x) for x in args]


def split(op: Op, args: list[Any], attrs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Arguments by place as far as Scheme has the same places as Python; the others by keyword."""
    bound = op.signature.bind(*args, **attrs)
    parameters = op.signature.parameters
    if any(p.kind is p.VAR_POSITIONAL for p in parameters.values()):
        return args, attrs
    if op.name == "batch_norm":
        bound.arguments.setdefault("training", False)
    if op.name == "focal_loss":  # Scheme's is of probabilities unless it is told otherwise
        bound.arguments.setdefault("logits", True)
    places = 1 if parameters and next(iter(parameters)) != "key" else 0
    given = list(bound.arguments.items())
    return [value for _, value in given[:places]], {k: v for k, v in given[places:] if v is not None}


def sample_of(op: Op, number: int) -> tuple[list[Any], dict[str, Any]]:
    sample: Sample = op.samples[number]
    dtype = KINDS["float" if "float" in op.dtypes else op.dtypes[0]]
    assert dtype.signed or not has_negative(sample)
    return tensors(arguments(sample, dtype, rng_of(op.name, number))), sample.attrs


def agree(got: Any, wanted: Any) -> None:
    if isinstance(wanted, tuple | list):
        assert len(got) >= len(wanted)  # a sparse matrix of Scheme's has its shape, too
        for g, w in zip(got, wanted, strict=False):
            agree(g, w)
        return
    if isinstance(got, ek.Tensor) and isinstance(wanted, ek.Tensor):
        if got._node is wanted._node:  # the same op of the same inputs
            return
        got, wanted = interpret.evaluate([got._node, wanted._node])
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got.astype(np.complex128), wanted.astype(np.complex128), rtol=1e-6, atol=1e-7)


@of_each("name", [n for n, f in NAMES.items() if f.removeprefix("op:").rstrip("!") not in BY_PLACE])
def test_a_name_is_its_row(name: str) -> None:
    op = TABLE[NAMES[name].removeprefix("op:").rstrip("!")]
    args, attrs = sample_of(op, 0)
    if op.name == "transpose":  # Scheme's exchanges the last two unless it is told otherwise
        attrs = {"axis0": 0, "axis1": 1}
    with ek.default_dtype("float64"):  # as Scheme has it
        wanted = FUNCTIONS[op.name](*args, **attrs)
    if name.endswith("!"):
        args = [ek.tensor(args[0]), *args[1:]]
        wanted = ek.tensor(wanted)
    places, given = split(op, args, attrs)
    got = through_scheme(name, places, given)
    agree(got, wanted)
    if name.endswith("!"):
        agree(args[0], wanted)


IN_PLACE = {"batch-norm", "tensor-batch-norm"}  # whose statistics go into the tensors that were given
MATRICES = {"to_sparse", "sparse_add", "sparse_transpose"}  # of which the parts are one sparse matrix, a list


def several_by_table() -> list[tuple[str, int]]:
    """Every name of a row that can give several results, with each of the row's samples."""
    rows = {name: TABLE[function.removeprefix("op:").rstrip("!")] for name, function in NAMES.items()}
    tuples = {
        n: op for n, op in rows.items() if any("tuple" in g for g in (op.gives, *(t for _, t in op.gives_if.values())))
    }
    return [(name, k) for name, op in tuples.items() if name not in IN_PLACE for k in range(len(op.samples))]


def test_several_results_are_several_values() -> None:
    """Of every name: values where the row says how many there are, a list where the arguments do; no vector."""
    told = set()
    for name, number in several_by_table():
        op = TABLE[NAMES[name].removeprefix("op:")]
        args, attrs = sample_of(op, number)
        wanted = FUNCTIONS[op.name](*args, **attrs)
        got = through_scheme(name, *split(op, args, attrs))
        if isinstance(wanted, tuple):
            listed = op.gives == LISTED or op.name in MATRICES
            assert type(got) is (list if listed else Values), (name, attrs)
            told.add(op.name)
        else:
            assert isinstance(got, ek.Tensor), (name, attrs)
    assert {"topk", "sort", "svd", "qr", "eigh", "slogdet", "unique", "max_pool2d", "histogram", "split"} <= told


@pytest.mark.parametrize(
    ("expression", "count"),
    [
        ("(value-and-gradient (lambda (x) (* x x)) 3.0)", 2), ("(value-and-gradient tensor-sum (tensor 1.0 2.0))", 2),
        ("(jvp (lambda (x) (* x x)) 3.0 1.0)", 2), ("(vjp (lambda (x) (* x x)) 3.0)", 2),
        ("(adam-update 1.0 2.0 #f 0.1)", 2), ("(sgd-momentum-update 1.0 2.0 #f 0.1)", 2), ("(adagrad 1.0 2.0 #f)", 2),
        ("(adadelta 1.0 2.0 #f)", 2), ("(lamb-update 1.0 2.0 #f 0.1)", 2), ("(rmsprop-update 1.0 2.0 #f 0.1)", 2),
        ("(rnn-forward (rnn-cell 3 2) (ones '(1 4 3)))", 2), ("(lstm-forward (lstm-cell 3 2) (ones '(1 4 3)))", 3),
        ("((lstm-cell 3 2) (ones '(1 3)))", 2), ("(forward (lstm-cell 3 2) (ones '(1 3)))", 2),
        ("((max-pool2d 2 :return-indices #t) (ones '(1 1 2 2)))", 2),
        ("((multi-head-attention 4 2) (ones '(1 3 4)) (ones '(1 3 4)) (ones '(1 3 4)))", 2),
        ("(conv2d-backward (ones '(1 1 1 1)) (ones '(1 1 3 3)) (ones '(1 1 3 3)))", 3),
        ("((jit-compile (lambda (x) (values x (* 2 x) (+ x 1)))) (tensor 1.0))", 3),
        ("((jit-compile (lambda (x) (tensor-sort x))) (tensor 2.0 1.0))", 2),
        ("(with-device 'cpu (tensor-sort (tensor 2.0 1.0)))", 2), ("(floor/ 7 2)", 2), ("(partition odd? '(1 2))", 2),
        ("(guard (e (#t 0)) (tensor-qr (ones '(2 2))))", 2), ("(floor/ (tensor 7 8) 2)", 2),
    ],
)  # fmt: skip
def test_procedures_give_several_values(expression: str, count: int) -> None:
    """Each of the ways to take them apart sees the same number; a variable is no place for them."""
    assert ek.eval(f"(call-with-values (lambda () {expression}) (lambda results (length results)))") == count
    names = " ".join("abc"[:count])
    assert ek.eval(f"(receive ({names}) {expression} (length (list {names})))") == count
    assert type(ek.eval(expression)) is Values
    with pytest.raises(SchemeError, match=f"expected 1 value, but got {count}") as caught:
        ek.eval(f"(let ((alone {expression})) alone)")
    assert "receive" in str(caught.value.hint)
    assert caught.value.span is not None


def test_several_values_under_derivatives() -> None:
    """Numbers that are differentiated go through rows with several results."""
    text = "(lambda (x) (receive (values places) (tensor-sort (tensor-stack (list (* x x) x))) (tensor-ref values 1)))"
    assert ek.eval(f"(derivative {text} 3.0)") == 6.0
    assert ek.eval(f"(gradient {text} 3.0)") == 6.0
    squared = "(lambda (w) (receive (v i) (tensor-topk w 1) (tensor-sum (* v v))))"
    assert ek.eval(f"(gradient {squared} (tensor 1.0 3.0))").tolist() == [0.0, 6.0]


def test_the_libraries_are_what_the_table_gives() -> None:
    for path, text in row_library.FILES.items():
        assert path.read_text(encoding="utf-8") == text(), "run 'make generate'"


def test_every_public_row_has_a_name() -> None:
    named = {function.removeprefix("op:").rstrip("!") for function in NAMES.values()}
    assert named == {op.name for op in TABLE.values() if op.public}


@pytest.mark.parametrize("name", ["tensor-add", "random-normal", "tensor-ref", "batch-norm", "stack", "tensor-shape"])
def test_names_have_documentation(name: str) -> None:
    assert ek.eval(f"(procedure-name {name})") == name
    assert ek.eval(f"(procedure-signature {name})").startswith(f"({name} ")
    assert ek.eval(f"(procedure-doc {name})")


def test_all_signatures_can_be_written() -> None:
    for name in NAMES:
        assert row_library.signature(name).startswith(f"({name}")
        assert row_library.doc(name)


# ---- access, by place ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "python"),
    [
        ("1 2", (1, 2)), ("-1 -2", (-1, -2)), ("0", 0), ("'_ 1", (slice(None), 1)), ("'... 1", (..., 1)),
        ("'(1 0)", [1, 0]), ("0 #(2 1)", (0, [2, 1])), ("", ()),
    ],
)  # fmt: skip
def test_elements_are_found(index: str, python: Any) -> None:
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    found = ek.eval(f"(tensor-ref (tensor (0.0 1.0 2.0) (3.0 4.0 5.0)) {index})")
    np.testing.assert_array_equal(np.asarray(found), x[python])
    assert isinstance(found, float) == (x[python].ndim == 0)


def test_elements_are_changed_and_copies_are_not() -> None:
    program = """
    (define t (zeros 4 4))
    (define copy (tensor-copy t))
    (define later (tensor-sum t))
    (do ((k 0 (+ k 1))) ((= k 4)) (tensor-set! t k (- 3 k) (+ k 0.5)))
    (define other (tensor-copy t))
    (tensor-set! t 0 (tensor 9 9 9 9))
    (list (tensor->list t) (tensor->list copy) (tensor->number later) (tensor->list other))"""
    changed, copy, later, other = ek.eval(program)
    diagonal = np.fliplr(np.diag([0.5, 1.5, 2.5, 3.5]))
    assert copy == np.zeros((4, 4)).tolist()
    assert later == 0
    assert other == diagonal.tolist()
    assert changed == [[9.0] * 4, *diagonal.tolist()[1:]]


def test_a_row_of_numbers_is_a_number() -> None:
    assert ek.eval("(relu -1.5)") == 0.0
    assert ek.eval("(list (relu 2) (tensor-add 1 2) (sigmoid 0))") == [2, 3, 0.5]
    assert ek.eval("(tensor-div 1 3)") == 1 / 3  # in double precision
    assert ek.eval("(tensor-exp 1/2)") == pytest.approx(np.exp(0.5), rel=1e-15)
    assert ek.eval("(tensor-less 1 2)") is True


def test_mapping_is_one_kernel() -> None:
    """What a map gives is computed in one step, branches and all."""
    ek.eval("(define (leaky x) (if (< x 0.0) (* 0.1 x) (if (> x 1.0) (+ 1.0 (log x)) x)))")
    x = np.linspace(-2, 3, 12, dtype=np.float32).reshape(3, 4)
    mapped = ek.eval("(lambda (t) (tensor-map leaky t))")
    assert len(ek.jit(mapped).plan(ek.from_numpy(x)).steps) == 1
    wanted = np.where(x < 0, 0.1 * x, np.where(x > 1, 1 + np.log(np.maximum(x, 1e-9)), x))
    np.testing.assert_allclose(mapped(ek.from_numpy(x)).numpy(), wanted, rtol=1e-6)


def test_numbers_cross_as_bytes_or_one_by_one() -> None:
    """Lists of plain numbers go as bytes; any other list gives the same tensor by the long way."""
    numbers = ek.eval("(define numbers (iota 1000 0.5)) (tensor->list (list->tensor (list numbers numbers)))")
    assert numbers == [[k + 0.5 for k in range(1000)]] * 2
    assert ek.eval("(tensor->vector (vector->tensor #(#(1 2) #(3 4))))") == [[1, 2], [3, 4]]
    assert ek.eval("(tensor->list (list->tensor '((1 2.5) #(3 1/2))))") == [[1.0, 2.5], [3.0, 0.5]]
    assert ek.eval("(tensor->list (list->tensor (list 1 (expt 2 62))))") == [1, 2**62]
    assert ek.eval("(tensor->list (tensor-cast (tensor 1 -2 300) 'float16))") == [1.0, -2.0, 300.0]
    assert ek.eval("(tensor->list (tensor 1+2i 3))") == [1 + 2j, 3]


@pytest.fixture(scope="module")
def session() -> Iterator[SessionThread]:
    thread = SessionThread()
    yield thread
    thread.close()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("(tensor-sum (tensor 1 2) 5)", "tensor-sum: axis 5 is out of range for 1 axes; given int64[2]"),
        ("(tensor-sum (tensor 1 2) :axes 0)", "tensor-sum: there is no keyword :axes; it is called with (x [:axis]"),
        ("(tensor-var (tensor 1.0) 0 1 #t 4)", "tensor-var: too many arguments, 5"),
        ("(tensor-matmul (tensor 1.0))", "tensor-matmul: y is missing; it is called with (x y)"),
        ("(tensor-sum (tensor 1) 0 :axis 0)", "tensor-sum: :axis is given twice"),
        ("(tensor-add (tensor 1 2) (tensor 1 2 3))", "tensor-add: shapes [2] and [3] do not broadcast"),
        ("(zeros '(2 3) :dtype 'floot)", "zeros: there is no dtype 'floot'"),
        ("(reshape (ones 6) 4 2)", "reshape: 6 elements of shape [6] do not fill shape [4, 2]"),
        ("(tensor-ref (tensor 1 2) 7)", "tensor-ref: index 7 is out of range for an extent of 2"),
        ("(tensor-ref (tensor 1 2) 0.0)", "tensor-ref: an index is an exact integer"),
        ("(tensor-set! (tensor 1 2) 0 1.5)", "tensor-set!: int64 cannot hold 1.5"),
        ("(tensor-add! 5 1)", "tensor-add!: a tensor is wanted as argument 1, to be changed in place, not 5"),
        ("(tensor-add! (tensor 1) 0.5)", "tensor-add!: the result of add gives float64, which does not fit"),
        ("(tensor-exp 'a)", "tensor-exp: a tensor or a number is wanted, not a"),
        ("(tensor->number (tensor 1 2))", "tensor->number: a tensor of shape [2] has 2 elements"),
        ("(categorical '((1.0 0.0) (2.0 -0.5)))", "probabilities are from 0 on, and the one at [1, 1] is -0.5"),
        ("(random-tensor '(2) 'norml)", "random-tensor: there is no distribution norml"),
        ("(to-device (tensor 1) 'cuda)", "to-device: there is no device cuda here"),
        ("(tensor-take (tensor 1 2) 7)", "tensor-take: index 7 is out of range for an extent of 2"),
        ("(tensor (1 2) (3))", "tensor: rows of different lengths"),
    ],
)  # fmt: skip
def test_errors_name_the_procedure_and_point_at_it(text: str, words: str, session: SessionThread) -> None:
    program = f"(define (inside)\n  {text})\n(tensor->list (inside))"
    with pytest.raises(SchemeError) as caught:
        session.call(lambda it: it.evaluate(program))
    assert words in caught.value.message
    span = caught.value.span
    assert span is not None
    assert (span.line, span.column) == (2, 3)


def test_samples_are_called_as_the_table_says() -> None:
    """What `split` leaves to keywords are parameters of the row."""
    for op in TABLE.values():
        if op.public and op.name not in BY_PLACE:
            args, attrs = sample_of(op, 0)
            _, given = split(op, args, attrs)
            assert set(given) <= set(inspect.signature(FUNCTIONS[op.name]).parameters)
    assert refilled([1], []) == [1]


def test_records_are_structures_in_every_session(session):
    """Each record is taken apart by the procedures of its own session, whichever began last."""
    text = """(define-record-type <both> (both one two) both? (one both-one) (two both-two))
              (define total (jit-compile (lambda (s) (both (+ (both-one s) (both-two s)) (both-one s)))))
              (define (answer) (tensor->list (both-one (total (both (tensor 1. 2.) (tensor 3. 4.))))))"""
    ek.eval(text)
    assert ek.eval("(answer)") == [4.0, 6.0]
    session.call(lambda own: own.evaluate(text))
    for _ in range(2):
        assert session.call(lambda own: own.shown(own.evaluate("(answer)"))) == "(4.0 6.0)"
        assert ek.eval("(answer)") == [4.0, 6.0]
