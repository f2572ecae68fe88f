"""What those who know NumPy write: its integers wherever a number is meant, and its words for axes."""

import json

import numpy as np
import pytest

import eshkol as ek

X = ek.tensor(np.arange(24.0).reshape(2, 3, 4))
N = np.int64

CALLS = {
    "roll": (lambda n: ek.roll(X, n(1), axis=n(0))),
    "roll of axes": (lambda n: ek.roll(X, (n(1), n(2)), axis=(n(0), n(1)))),
    "tensordot": (lambda n: ek.tensordot(X, ek.permute(X, (2, 1, 0)), axes=n(1))),
    "moveaxis": (lambda n: ek.moveaxis(X, n(0), n(1))),
    "reshape": (lambda n: X.reshape(n(6), n(4))),
    "expand": (lambda n: X.expand(n(5), -1, -1, -1)),
    "tile": (lambda n: ek.tile(X, (n(1), n(2), n(1)))),
    "repeat": (lambda n: ek.repeat(X, n(2), axis=n(0))),
    "split": (lambda n: ek.split(X, n(2), axis=n(2))[1]),
    "chunk": (lambda n: ek.chunk(X, n(2), n(2))[1]),
    "unsqueeze": (lambda n: X.unsqueeze(n(1))),
    "pad": (lambda n: ek.pad(X, ((n(0), n(1)), (0, 0), (n(2), 0)))),
    "topk": (lambda n: ek.topk(X, n(2))[0]),
    "diag": (lambda n: ek.diag(X[0, 0], n(1))),
    "tril": (lambda n: ek.tril(X, n(1))),
    "unfold": (lambda n: X.unfold(n(2), n(2), n(1))),
    "trace": (lambda n: ek.trace(X[0], n(1))),
    "kthvalue": (lambda n: ek.kthvalue(X, n(1))[0]),
    "conv2d": (lambda n: ek.conv2d(X[None], ek.ones((2, 2, 2, 2)), stride=n(1), padding=n(1))),
    "max_pool2d": (lambda n: ek.max_pool2d(X[None], n(2))),
    "permute": (lambda n: X.permute(n(2), n(0), n(1))),
    "fft": (lambda n: ek.fft.fft(X, n(4), dim=n(1)).real),
    "zeros": (lambda n: ek.zeros(n(2), n(3))),
    "narrow": (lambda n: ek.narrow(X, n(1), n(0), n(2))),
    "tensor_split": (lambda n: ek.tensor_split(X, n(2), n(2))[1]),
    "diff": (lambda n: ek.diff(X, n=n(1), dim=n(1))),
    "randint": (lambda n: ek.zeros_like(ek.randint(n(0), n(5), (n(3),)))),
    "vmap": (lambda n: ek.vmap(lambda x: x.sum(), in_axes=n(1))(X)),
    "grad": (lambda n: ek.grad(lambda a, b: (a * b).sum(), argnums=n(1))(X, X)),
}


@pytest.mark.parametrize("name", CALLS)
def test_integers_of_numpy_are_integers(name):
    np.testing.assert_array_equal(CALLS[name](N).numpy(), CALLS[name](int).numpy())


def test_bools_are_no_integers():
    with pytest.raises(ek.errors.EshkolError):
        ek.nn.Linear(True, 3)
    with pytest.raises(ek.errors.EshkolError):
        ek.nn.Linear(np.True_, 3)
    with pytest.raises(ek.errors.EshkolError):
        ek.nn.Linear(N(0), 3)


def test_words_of_numpy():
    x = X.numpy()
    np.testing.assert_array_equal(ek.diff(X, axis=1).numpy(), np.diff(x, axis=1))
    np.testing.assert_allclose(ek.var(X, axis=1, ddof=1).numpy(), x.var(axis=1, ddof=1))
    np.testing.assert_allclose(
        ek.linalg.norm(X, axis=1, keepdims=True).numpy(), np.linalg.norm(x, axis=1, keepdims=True)
    )
    np.testing.assert_array_equal(X.nansum(axis=1, keepdims=True).numpy(), np.nansum(x, axis=1, keepdims=True))
    with pytest.raises(TypeError, match="given 'dim' twice"):
        ek.diff(X, dim=1, axis=1)


def test_layers_keep_python_numbers():
    """What a layer says of itself goes into files."""
    layer = ek.nn.Linear(N(4), N(3))
    assert layer(X.float()).shape == (2, 3, 3)
    assert json.dumps([layer.in_features, layer.out_features]) == "[4, 3]"
    kernel = ek.nn.Conv2d(N(2), N(5), N(3)).kernel_size
    assert json.dumps(kernel) == "[3, 3]"


def test_names_of_numpy():
    """What NumPy has and PyTorch has not is there under NumPy's name, with NumPy's arguments."""
    x = np.array([3.0, 1.0, 2.0])
    for name, *args in (
        ("percentile", x, 30.0), ("average", x), ("ptp", x), ("interp", x, np.array([0.0, 4.0]), np.array([1.0, 2.0])),
        ("append", x, x), ("array_split", x, 2), ("convolve", x, x), ("cbrt", x), ("flatnonzero", x), ("nanmax", x),
        ("polyval", x, x), ("union1d", x, x + 1), ("divmod", x, np.full(3, 2.0)), ("permute_dims", x[None], (1, 0)),
    ):  # fmt: skip
        found, wanted = (getattr(library, name)(*args) for library in (ek, np))
        several = found if isinstance(found, list | tuple) else [found]
        for one, other in zip(several, wanted if isinstance(wanted, list | tuple) else [wanted], strict=True):
            np.testing.assert_allclose(np.asarray(one), other, rtol=1e-6)
    assert ek.array([1.0, 2.5]).tolist() == [1.0, 2.5]
    assert "array" in dir(ek)
    with pytest.raises(AttributeError, match=r"ek\.grad for derivatives"):
        getattr(ek, "grad" + "ient")
