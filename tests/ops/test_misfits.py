"""Every row of the op table, given what does not fit: it is refused in so many words, or computed as the row says.

Each array of each sample is changed in turn: an axis less, none, one more, one of its axes longer, another dtype. What
comes of it is an error of ours that tells what was given or what to do, or a result of the shape and dtype that were
inferred, and where NumPy has an answer of that shape, NumPy's; no imaginary part is dropped in silence. Anything else
would be an error of Python's from the midst of the library, or a silent wrong answer.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pytest
from op_harness import TESTED, arguments, arrays_in, close, flat, refilled, rng_of, rows

import eshkol as ek
from batches import in_batches
from effort import amount
from eshkol.errors import DTypeError, EshkolError, ShapeError
from eshkol.graph import interpret
from eshkol.ops import dtypes
from eshkol.ops.row import Op
from eshkol.tensors.functions import FUNCTIONS

OPS = {op.name: op for op in rows() if op.name in FUNCTIONS}
# Composites whose reference is another function of what is not among the samples: of bools NumPy's are those of logic,
# of two shapes that broadcast it measures each by itself, and it takes places one after another. A singular matrix has
# vectors that are not determined, and a condition number that rounding makes.
UNLIKE = {
    "cosine_similarity", "cosine_embedding_loss", "bucketize", "index_add", "index_select", "svd", "condition_number",
}  # fmt: skip


def misfits(a: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    if a.ndim and a.shape[0]:
        yield "an axis less", np.asarray(a[0])
    if a.ndim > 1 and a.size:
        yield "no axis", np.asarray(a.reshape(-1)[0])
    yield "an axis more", a[None]
    for axis in range(a.ndim):
        if a.shape[axis]:
            yield f"axis {axis} longer", np.concatenate([a, np.take(a, [0], axis)], axis)
    kinds = {"bool": np.bool_, "float": np.float32, "complex": np.complex64, "int": np.int32}
    for kind, dtype in kinds.items():
        if a.dtype != dtype and not (a.dtype.kind == "c" and kind != "complex"):
            yield kind, np.asarray(np.nan_to_num(a, posinf=1, neginf=-1)).astype(dtype)


def outcome(op: Op, args: list, attrs: dict) -> list[np.ndarray] | None:
    """What a row gives, or None where it refuses in so many words."""
    try:
        given = refilled(args, [ek.tensor(x) for x in arrays_in(args)])
        found = [t for t in flat(FUNCTIONS[op.name](*given, **attrs)) if isinstance(t, ek.Tensor)]
        got = interpret.evaluate([t._node for t in found])
    except EshkolError as error:
        said = str(error)
        if not error.hint and not any(str(list(x.shape)) in said for x in arrays_in(args)):
            pytest.fail(f"neither what was given is told, nor what to do: {said}")
        return None
    for tensor, array in zip(found, got, strict=True):
        assert array.shape == tensor.shape
        assert array.dtype == tensor.dtype.numpy
    return got


@pytest.mark.unchecked  # nothing is compiled
@in_batches("name", OPS)
def test_what_does_not_fit_is_refused_or_computed(name):
    op = OPS[name]
    kind = "float" if "float" in op.dtypes else op.dtypes[-1]
    dtype = dtypes.float32 if kind == "float" else TESTED[kind][-1]
    for number, sample in [*enumerate(op.samples)][: amount(None, 2)]:
        args = arguments(sample, dtype, rng_of(name, number))
        arrays = arrays_in(args)
        for place, array in enumerate(arrays):
            for what, misfit in misfits(array):
                changed = refilled(args, [misfit if k == place else x for k, x in enumerate(arrays)])
                try:
                    with warnings.catch_warnings(), np.errstate(all="ignore"):
                        warnings.simplefilter("error", np.exceptions.ComplexWarning)
                        got = outcome(op, changed, sample.attrs)
                        compare(op, got, changed, sample.attrs, what)
                except Exception as error:
                    error.add_note(f"{name}, sample {number}, array {place} of shape {list(array.shape)}: {what}")
                    raise


def compare(op: Op, got: list[np.ndarray] | None, args: list, attrs: dict, what: str) -> None:
    """With the reference of a composite, where that takes the same; of other dtypes the kinds of numbers differ."""
    if got is None or not op.composite or op.random or op.name in UNLIKE or what in ("bool", "float", "complex", "int"):
        return
    try:
        wanted = [np.asarray(x) for x in flat(op.reference(*args, **attrs))]
    except Exception:
        return  # NumPy refuses what we take
    assert [x.shape for x in got] == [x.shape for x in wanted]
    for g, w in zip(got, wanted, strict=True):
        close(g, w, op.tolerance)


def floats_of(op: Op) -> list[str]:
    """The attributes that are floats."""
    return [n for n, parameter in op.signature.parameters.items() if str(parameter.annotation).startswith("float")]


@pytest.mark.unchecked
@in_batches("name", [n for n, op in OPS.items() if floats_of(op)])
def test_an_integer_is_taken_where_a_float_is_wanted(name):
    op = OPS[name]
    dtype = dtypes.float32 if "float" in op.dtypes else TESTED[op.dtypes[-1]][-1]
    for number, sample in enumerate(op.samples):
        args = arguments(sample, dtype, rng_of(name, number))
        for attribute in floats_of(op):
            place = [*op.signature.parameters].index(attribute)
            given = [
                (args, {**sample.attrs, attribute: one}) if place >= len(args)
                else ([*args[:place], one, *args[place + 1 :]], sample.attrs) for one in (1.0, 1)
            ]  # fmt: skip
            with np.errstate(all="ignore"):
                wanted, found = (outcome(op, *them) for them in given)
            if wanted is not None:
                assert found is not None, f"{attribute}=1 of sample {number} is refused, and 1.0 is not"
                for a, b in zip(wanted, found, strict=True):
                    np.testing.assert_array_equal(a, b, err_msg=f"{attribute} of sample {number}")


REALS = {
    "floor": 1, "ceil": 1, "trunc": 1, "erf": 1, "erfc": 1, "ndtr": 1, "lgamma": 1, "digamma": 1, "relu": 1,
    "sigmoid": 1, "softplus": 1,
    "remainder": 2, "fmod": 2, "atan2": 2, "hypot": 2, "logaddexp": 2, "xlogy": 2, "floor_divide": 2, "copysign": 2,
    "heaviside": 2,
}  # fmt: skip


@pytest.mark.parametrize("name", REALS)
def test_functions_of_real_numbers_refuse_complex_ones(name):
    z, x = ek.tensor([1.5 + 2j, -0.5j]), ek.tensor([1.0, 2.0])
    for args in ([z],) if REALS[name] == 1 else ([z, x], [x, z], [z, z]):
        with pytest.raises(DTypeError, match=r"real numbers, not for complex64[\s\S]*x\.real"):
            getattr(ek, name)(*args)


def test_a_sum_leads_back_only_to_what_broadcasts():
    x = ek.ones(2, 3)
    assert ek.sum_to(x, (1, 3)).tolist() == [[2.0, 2.0, 2.0]]
    for shape in ((3, 2), (6,), (1, 2, 3), (2,)):
        with pytest.raises(ShapeError, match=r"\[2, 3\]"):
            ek.sum_to(x, shape)


def test_the_parts_of_a_sparse_matrix_are_whole_numbers():
    values, indices, pointers = ek.tensor([1.0, 2.0]), ek.tensor([0, 1]), ek.tensor([0, 1, 2])
    for parts in ((values, indices.float(), pointers), (values, indices, pointers.float())):
        with pytest.raises(DTypeError, match=r"of a sparse matrix are float32, not integers[\s\S]*long"):
            ek.to_dense(*parts, (2, 2))
