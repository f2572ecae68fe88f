"""Data sets, their structures, and the random numbers of samples."""

from __future__ import annotations

from collections import Counter, namedtuple

import numpy as np
import pytest
from unusual import Counting, Numbered

import eshkol as ek
from eshkol.data import ArrayDataset, ConcatDataset, DataLoader, Padded, Pass, TensorDataset, collate, random_split
from eshkol.data.draws import fold, integers, permutation, root, uniform
from eshkol.errors import DataError, IndexOutOfRange, ShapeError

X, Y = np.arange(20, dtype=np.float32).reshape(10, 2), np.arange(10)


# --- draws ------------------------------------------------------------------------------------------


def folded(key: int, number: int) -> int:
    """The same as `fold`, with Python's integers."""
    every = (1 << 64) - 1
    x = (key + (number + 1) * 0x9E3779B97F4A7C15) & every
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & every
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & every
    return x ^ (x >> 31)


def test_draws_are_the_same_on_every_machine() -> None:
    key = folded(folded(folded(folded(folded(0, 2**64 - 3), 5), 1 + 2), 11), 3)
    keys = Pass(2**64 - 3, 5).keys(np.array([11]), 2)
    assert int(fold(keys, 3)[0]) == key
    assert uniform(keys, 3)[0] == (key >> 11) / 2**53
    assert integers(keys, 1000, 3)[0] == ((key >> 32) * 1000) >> 32
    first = folded(folded(folded(0, 7), 3), 0)
    assert Pass(7, 3).order(9).tolist() == sorted(range(9), key=lambda k: folded(first, k))
    assert permutation(0, root(0)).tolist() == []


def test_permutations_are_fair() -> None:
    seen = Counter(tuple(permutation(4, fold(root(0), k)).tolist()) for k in range(2400))
    assert len(seen) == 24
    assert 60 < min(seen.values()) <= max(seen.values()) < 150  # 100 expected, a standard deviation of 10


def test_uniform_numbers_are_uniform_and_independent() -> None:
    keys = Pass(0, 0).keys(np.arange(20000), 0)
    first, second = uniform(keys, 0), uniform(keys, 1)
    for u in (first, second):
        counts = np.histogram(u, 10, (0, 1))[0]
        assert ((counts - 2000) ** 2 / 2000).sum() < 30  # chi squared with 9 degrees of freedom: 0.0004
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.03
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 0.03
    counts = np.bincount(integers(keys, 7), minlength=7)
    assert ((counts - 20000 / 7) ** 2 / (20000 / 7)).sum() < 25
    assert len(np.unique(keys)) == len(keys)


# --- data sets --------------------------------------------------------------------------------------


def test_arrays_are_rows_alone_and_together() -> None:
    data = ArrayDataset(X, Y)
    assert len(data) == 10
    x, y = data[-1]
    assert x.tolist() == [18, 19]
    assert y == 9
    bx, by = data.take(np.array([3, 1]), Pass())
    assert bx.tolist() == [[6, 7], [2, 3]]
    assert by.tolist() == [3, 1]
    assert ArrayDataset(X)[2].tolist() == [4, 5]
    assert ArrayDataset(a=X, b=Y)[2]["b"] == 2
    assert len(list(data)) == 10


def test_tensors_and_lists_are_arrays() -> None:
    data = TensorDataset(ek.tensor([[1.0], [2.0]]), [0, 1])
    assert data[1][0].tolist() == [2.0]
    assert ArrayDataset([0.5, 1.5])[0].dtype == np.float32


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ArrayDataset(X, Y[:3]), "different lengths"),
        (lambda: ArrayDataset(), "takes arrays"),
        (lambda: ArrayDataset(3.0), "one number"),
        (lambda: ArrayDataset([[1], [2, 3]]), "different lengths"),
        (lambda: ArrayDataset(X)[10], "index 10 is out of range: the data set has 10 samples"),
        (lambda: ArrayDataset(X)["a"], "integer"),
        (lambda: ArrayDataset(X).subset([3, 10]), "index 10 is out of range"),
        (lambda: ArrayDataset(X).subset(np.ones(4, bool)), "mask"),
        (lambda: ArrayDataset(X, Y).map(ek.data.Scale(2.0))[0], "on=0"),
        (lambda: ArrayDataset(X, Y).map(np.sin, on=2)[0], "no part 2"),
        (lambda: ArrayDataset(X, Y).map(3), "transform or a function"),
        (lambda: random_split(ArrayDataset(X), [5, 6]), "do not make the 10"),
        (lambda: random_split(ArrayDataset(X), [0.5, 0.4]), "do not make 1"),
        (lambda: random_split(ArrayDataset(X), [5, 5], seed=-1), "seed"),
        (lambda: ConcatDataset([]), "at least one"),
    ],
)
def test_misuse_is_told(make, words) -> None:
    with pytest.raises((DataError, ShapeError, IndexOutOfRange), match=words):
        make()


def test_subsets_and_splits() -> None:
    data = ArrayDataset(X, Y)
    assert [y for _, y in data.subset(slice(8, None))] == [8, 9]
    assert [y for _, y in data.subset(Y % 2 == 0).subset([-1, 0])] == [8, 0]
    assert len(data.subset([])) == 0
    first, second = random_split(data, [0.7, 0.3], seed=4)
    assert len(first) == 7
    assert sorted([*first.indices, *second.indices]) == list(range(10))
    assert random_split(data, [7, 3], seed=4)[1].indices.tolist() == second.indices.tolist()
    assert random_split(data, [7, 3], seed=5)[1].indices.tolist() != second.indices.tolist()
    assert [len(p) for p in random_split(data, [0.33, 0.33, 0.34])] == [3, 4, 3]


def test_data_sets_one_behind_the_other() -> None:
    both = ArrayDataset(X, Y) + ArrayDataset(X + 100, Y + 100) + ArrayDataset(X[:1], Y[:1] + 500)
    assert len(both) == 21
    assert [both[k][1] for k in (0, 9, 10, 20, -2)] == [0, 9, 100, 500, 109]
    x, y = both.take(np.array([20, 3, 12, 4]), Pass())
    assert y.tolist() == [500, 3, 102, 4]
    assert x[:, 0].tolist() == [0, 6, 104, 8]
    assert (ArrayDataset(X, Y) + Numbered(3)).take(np.array([0, 11]), Pass()) is None


def test_a_sample_is_the_same_alone_and_in_a_batch() -> None:
    images = np.random.default_rng(0).random((12, 1, 6, 6)).astype(np.float32)
    chain = ek.data.Compose(ek.data.RandomCrop(6, padding=2), ek.data.RandomFlip(), ek.data.RandomRotation(30))
    data = ArrayDataset(images, np.arange(12)).map(chain, on=0).map(ek.data.RandomFlip(axis=-2), on=0)
    assert data.draws == 2
    at, indices = Pass(5, 2), np.array([7, 0, 11])
    batch, _ = data.take(indices, at)
    alone = np.stack([data.sample(int(k), at)[0] for k in indices])
    np.testing.assert_array_equal(batch, alone)
    other, _ = data.take(indices, Pass(5, 3))
    assert (other != batch).any()
    inside, _ = data.subset([3, 7]).take(np.array([1]), at)
    np.testing.assert_array_equal(inside[0], batch[0])  # the sample counts, not where it stands


def test_functions_of_samples_and_of_batches() -> None:
    data = ArrayDataset(X, Y)
    assert data.map(lambda s: s[0].sum())[3] == 13
    assert data.map(lambda y: y * 10, on=1)[3][1] == 30
    doubled = data.map(lambda x: x * 2, on=0, batched=True)
    assert doubled.take(np.array([1]), Pass())[0].tolist() == [[4, 6]]
    assert doubled[1][0].tolist() == [4, 6]
    noise = data.map(lambda x, g: x + g.random(), on=0, random=True)
    assert noise.sample(3, Pass(0, 1))[0][0] == noise.sample(3, Pass(0, 1))[0][0]
    assert noise.sample(3, Pass(0, 1))[0][0] != noise.sample(3, Pass(0, 2))[0][0]


def test_streams_are_mapped_shuffled_and_dealt_out() -> None:
    stream = Counting(20)
    assert list(stream.map(lambda k: k + 1))[:3] == [1, 2, 3]
    mixed = stream.shuffled(5)
    first, second = list(mixed.stream(Pass(0, 0))), list(mixed.stream(Pass(0, 1)))
    assert sorted(first) == sorted(second) == list(range(20))
    assert first != second != list(range(20))
    assert list(mixed.stream(Pass(0, 0))) == first
    assert list(stream.shard(1, 3)) == [1, 4, 7, 10, 13, 16, 19]
    with pytest.raises(DataError, match="rank"):
        stream.shard(3, 3)


# --- collation --------------------------------------------------------------------------------------

Pair = namedtuple("Pair", "x y")


def test_structures_are_collated() -> None:
    batch = collate([{"x": np.ones(2), "t": ("a", [k, 2.5, True])} for k in range(3)])
    assert batch["x"].shape == (3, 2)
    words, (ints, floats, bools) = batch["t"]
    assert words == ["a"] * 3
    assert [a.dtype for a in (ints, floats, bools)] == [np.int64, np.float32, np.bool_]
    assert collate([Pair(1, ek.tensor([1.0])), Pair(2, ek.tensor([3.0]))]).y.tolist() == [[1.0], [3.0]]
    assert collate([None, "a"]) == [None, "a"]


@pytest.mark.parametrize(
    ("samples", "words"),
    [
        ([np.ones(2), np.ones(3)], r"different shapes: \[2\] \(the first\) and \[3\] \(number 1\)"),
        ([{"a": (1, np.ones(2))}, {"a": (1, np.ones((2, 1)))}], r"shapes at \['a'\]\[1\]"),
        ([{"a": 1}, {"b": 1}], "different keys"),
        ([{"a": 1}, 3], "different keys"),
        ([(1, 2), (1,)], "numbers of parts: 2 .* and 1"),
        ([[1, 2], [1]], "Padded"),
    ],
)
def test_what_does_not_go_together_is_told(samples, words) -> None:
    with pytest.raises(DataError, match=words):
        collate(samples)


def test_padding() -> None:
    batch = Padded(-1)([(np.arange(2), 0), (np.arange(3), 1)])
    assert batch[0].tolist() == [[0, 1, -1], [0, 1, 2]]
    with pytest.raises(DataError, match="different shapes"):
        Padded(0)([np.ones(2), np.ones((2, 2))])


# --- what is shown of them ----------------------------------------------------------------------------


def test_data_sets_show_how_many_samples_there_are_and_of_what_kind() -> None:
    digits, rows = ek.data.digits(), ArrayDataset(x=X, name=np.array(list("abcdefghij")))
    assert repr(digits) == "<ArrayDataset of 1797 samples: float32[1, 8, 8], int64>"
    assert repr(digits.subset([5])) == "<Subset of 1 sample: float32[1, 8, 8], int64>"
    assert repr(digits + digits) == "<ConcatDataset of 3594 samples: float32[1, 8, 8], int64>"
    assert repr(digits + rows) == "<ConcatDataset of 1807 samples>"
    assert repr(rows) == "<ArrayDataset of 10 samples: x: float32[2], name: text>"
    flipped = digits.map(ek.data.RandomFlip(), on=0)
    assert repr(flipped) == "<MappedDataset of 1797 samples: RandomFlip on 0 of float32[1, 8, 8], int64>"
    assert repr(TensorDataset(Y).map(lambda y: 1 / 0)) == "<MappedDataset of 10 samples: a function of int64>"
    assert repr(ek.data.BlockDataset(Y, 4, 1)) == "<BlockDataset of 6 samples: int64[4], int64[4]>"


def test_loaders_show_how_many_batches_there_are() -> None:
    digits = ek.data.digits()
    assert repr(DataLoader(digits, 64, shuffle=True)) == "<DataLoader of 29 batches of 64, shuffled>"
    assert repr(DataLoader(digits, 64, drop_last=True)) == "<DataLoader of 28 batches of 64>"
    assert repr(DataLoader([1, 2, 3], 4)) == "<DataLoader of 1 batch of 4>"
    assert repr(DataLoader(digits, 2, sampler=[5, 6, 7])) == "<DataLoader of 2 batches of 2, by a sampler>"
    stream = Counting(9).shuffled(4)
    assert repr(stream) == "<ShuffledStream, a stream>"
    assert repr(DataLoader(stream, 4)) == "<DataLoader of batches of 4>"


def test_what_is_shown_runs_no_code_of_users() -> None:
    class Broken(ek.data.Dataset):
        def __len__(self) -> int:
            raise RuntimeError

        def __getitem__(self, index: int) -> int:
            raise RuntimeError

        def told(self) -> str:
            raise RuntimeError

    class Anew(ArrayDataset):
        def __getitem__(self, index: int) -> int:
            return 5

    assert repr(Broken()) == "<Broken, a data set>"
    assert repr(Broken().map(abs)) == "<MappedDataset, a data set: abs>"
    assert repr(DataLoader(Broken(), 3, shuffle=True)) == "<DataLoader of batches of 3, shuffled>"
    assert repr(Anew(X)) == "<Anew of 10 samples>"
