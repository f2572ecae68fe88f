"""Loaders: order, batches, epochs, resuming, samplers, errors; with and without threads."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unusual import Counting, Numbered, noisy

import eshkol as ek
from eshkol.data import ArrayDataset, DataLoader, DistributedSampler, SkippedData, WeightedSampler
from eshkol.errors import DataError, EshkolError

DATA = ArrayDataset(np.arange(40, dtype=np.float32).reshape(20, 2), np.arange(20))


def labels(loader) -> list[list[int]]:
    return [y.tolist() for _, y in loader]


def flat(batches: list[list[int]]) -> list[int]:
    return [k for batch in batches for k in batch]


def test_batches_are_tensors_in_order() -> None:
    loader = DataLoader(DATA, 6)
    assert len(loader) == 4
    batches = list(loader)
    assert [x.shape for x, _ in batches] == [(6, 2), (6, 2), (6, 2), (2, 2)]
    assert isinstance(batches[0][0], ek.Tensor)
    assert batches[1][1].tolist() == [6, 7, 8, 9, 10, 11]
    assert len(DataLoader(DATA, 6, drop_last=True)) == len(list(DataLoader(DATA, 6, drop_last=True))) == 3
    (x, _), *_ = DataLoader((np.ones((4, 3)), np.zeros(4)), 2, numpy=True)  # a tuple of arrays
    assert isinstance(x, np.ndarray)
    assert [b.tolist() for b in DataLoader([1, 2, 3], 2)] == [[1, 2], [3]]  # a list of samples
    assert list(DataLoader(["a", "b", "c"], 2)) == [["a", "b"], ["c"]]
    assert list(DataLoader([], 2)) == []


def test_shuffling_by_seed_and_epoch() -> None:
    loader, same, other = (DataLoader(DATA, 7, shuffle=True, seed=s) for s in (1, 1, 2))
    first, second = labels(loader), labels(loader)
    assert flat(first) != flat(second)
    assert sorted(flat(first)) == sorted(flat(second)) == list(range(20))
    assert first != second
    assert [labels(same), labels(same)] == [first, second]
    assert labels(other) != first
    same.set_epoch(1)
    assert labels(same) == second


def test_without_a_seed_the_seed_of_all_decides() -> None:
    def fresh() -> list[list[int]]:
        ek.seed(3)
        return labels(DataLoader(DATA, 7, shuffle=True))

    assert fresh() == fresh()


def test_a_walk_that_is_left_early_is_an_epoch() -> None:
    loader = DataLoader(DATA, 7, shuffle=True, seed=1)
    reference = DataLoader(DATA, 7, shuffle=True, seed=1)
    next(iter(loader))
    labels(reference)
    assert labels(loader) == labels(reference)
    assert loader.epoch == 2


MAPPED = Numbered(23).map(noisy, random=True)


@given(st.integers(0, 30), st.sampled_from([0, 2]), st.sampled_from([0, 3]), st.booleans())
@settings(max_examples=12)
def test_a_loader_goes_on_where_another_stood(stop, before, after, drop) -> None:
    def made(workers: int, seed: int) -> DataLoader:
        return DataLoader(MAPPED, 5, shuffle=True, seed=seed, workers=workers, drop_last=drop, numpy=True)

    def rest(loader: DataLoader, epochs: int) -> list[np.ndarray]:
        found = []
        while loader.epoch < epochs:
            found += [x for x, _ in loader]
        return found

    with made(0, 8) as whole, made(before, 8) as first, made(after, 99) as second:
        expected = rest(whole, 3)[stop:]
        seen = 0
        while seen < stop and first.epoch < 3:
            for _ in first:
                seen += 1
                if seen == stop:
                    break
            else:
                continue
            break
        state = first.state_dict()
        second.load_state_dict(state)
        found = rest(second, 3)
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_stream_goes_on_where_another_stood() -> None:
    first = DataLoader(Counting(23).shuffled(7), 4, seed=3, workers=1)
    whole = [b.tolist() for b in DataLoader(Counting(23).shuffled(7), 4, seed=3)]
    walk = iter(first)
    assert [next(walk).tolist() for _ in range(2)] == whole[:2]
    second = DataLoader(Counting(23).shuffled(7), 4)
    second.load_state_dict(first.state_dict())
    assert [b.tolist() for b in second] == whole[2:]
    assert second.epoch == 1
    assert [len(b) for b in whole] == [4, 4, 4, 4, 4, 3]
    assert len(list(DataLoader(Counting(23), 4, drop_last=True))) == 5
    first.close()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"batch_size": 3}, "batch_size 3, and this one has 5"),
        ({"samples": 4}, "samples 4"),
        ({"position": 9}, "batch 9 of epoch 0"),
        ({"version": 2}, "no state"),
        ({"seed": -1}, "seed"),
        ({"more": 1}, "no state"),
    ],
)
def test_a_state_of_other_data_is_refused(change, words) -> None:
    loader = DataLoader(DATA, 5)
    with pytest.raises(DataError, match=words):
        loader.load_state_dict({**loader.state_dict(), **change})


@pytest.mark.parametrize("workers", [1, 3])
def test_threads_give_what_one_thread_gives(workers) -> None:
    with DataLoader(MAPPED, 4, shuffle=True, seed=5, workers=workers) as loader:
        plain = DataLoader(MAPPED, 4, shuffle=True, seed=5)
        for _ in range(2):
            for (a, i), (b, j) in zip(loader, plain, strict=True):
                assert i.tolist() == j.tolist()
                np.testing.assert_array_equal(a.numpy(), b.numpy())
        next(iter(loader))  # left early: what is under way for it goes nowhere
        labels(plain)
        loader.set_epoch(2)
        plain.set_epoch(2)
        assert labels(loader) == labels(plain)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_broken_sample_is_named_or_left_out(workers) -> None:
    data = Numbered(20, broken=(7, 13))
    with DataLoader(data, 4, workers=workers) as loader:
        walk = iter(loader)
        next(walk)
        with pytest.raises(DataError, match="sample 7 cannot be loaded: ValueError: no 7 here") as caught:
            next(walk)
        assert isinstance(caught.value.__cause__, ValueError)
    with DataLoader(data, 4, workers=workers, on_error="skip") as loader:
        with pytest.warns(SkippedData, match="2 samples of epoch 0 .* the first: sample 7: ValueError"):
            assert flat(labels(loader)) == [k for k in range(20) if k not in (7, 13)]
        assert [k for k, _ in loader.skipped] == [7, 13]


def test_a_broken_stream_is_named() -> None:
    with pytest.raises(DataError, match="sample 6 cannot be loaded: OSError: the line was cut"):
        list(DataLoader(Counting(6, fails=True), 4))


def test_a_whole_batch_that_cannot_be_left_out_is_not_delivered() -> None:
    loader = DataLoader(Numbered(6, broken=(2, 3)), 2, on_error="skip")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkippedData)
        assert labels(loader) == [[0, 1], [4, 5]]


def test_a_fast_batch_that_fails_names_its_sample() -> None:
    data = DATA.map(ek.data.OneHot(11), on=1)
    with pytest.raises(DataError, match="sample 11 cannot be loaded: OneHot: class 11 is out of range"):
        list(DataLoader(data, 8))


def test_waiting_has_an_end() -> None:
    with (
        DataLoader(Numbered(4, slow=0.3), 2, workers=1, timeout=0.05) as loader,
        pytest.raises(DataError, match="did not come within"),
    ):
        list(loader)


def test_two_walks_at_once() -> None:
    loader = DataLoader(DATA, 10)
    assert [(a[1].tolist(), b[1].tolist()) for a, b in zip(loader, loader, strict=True)] == [
        (list(range(10)), list(range(10))), (list(range(10, 20)), list(range(10, 20)))
    ]  # fmt: skip
    with DataLoader(DATA, 5, workers=1) as loader:
        first = iter(loader)
        next(first)
        second = iter(loader)
        next(second)
        with pytest.raises(DataError, match="another walk"):
            list(first)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch_size": 0}, "batch_size is an integer from 1 on"),
        ({"workers": -1}, "workers"),
        ({"workers": 1, "worker": "proces"}, "did you mean 'process'"),
        ({"on_error": "ignore"}, "on_error"),
        ({"shuffle": True, "sampler": [1]}, "sampler decides"),
        ({"sampler": iter([1])}, "walked once for each epoch"),
        ({"sampler": [25]}, "index 25"),
        ({"seed": 1.5, "shuffle": True}, "seed"),
        ({"pin": True}, "page-locked"),
    ],
)
def test_misuse_of_a_loader_is_told(options, words) -> None:
    with pytest.raises(EshkolError, match=words):
        list(DataLoader(DATA, **{"batch_size": 4, **options}))


def test_misuse_of_data_is_told() -> None:
    with pytest.raises(DataError, match="is no data set"):
        DataLoader(iter([1]), 2)
    for options in ({"shuffle": True}, {"workers": 2}):
        with pytest.raises(DataError, match="stream"):
            DataLoader(Counting(3), **options)
    with pytest.raises(DataError, match="known when it ends"):
        len(DataLoader(Counting(3)))


def test_samplers() -> None:
    assert labels(DataLoader(DATA, 2, sampler=[3, 1, 3])) == [[3, 1], [3]]
    shares = [DistributedSampler(DATA, r, 3, seed=1).order(4) for r in range(3)]
    assert [len(s) for s in shares] == [7, 7, 7]
    assert set(np.concatenate(shares)) == set(range(20))
    short = [DistributedSampler(DATA, r, 3, seed=1, drop_last=True).order(4) for r in range(3)]
    assert len(set(np.concatenate(short))) == 18
    assert DistributedSampler(DATA, 1, 3, shuffle=False).order(0).tolist() == [1, 4, 7, 10, 13, 16, 19]
    assert DistributedSampler(2, 2, 3).order(0).shape == (1,)
    assert labels(DataLoader(DATA, 7, sampler=DistributedSampler(DATA, 0, 3, seed=1))) != labels(
        DataLoader(DATA, 7, sampler=DistributedSampler(DATA, 1, 3, seed=1))
    )
    with pytest.raises(DataError, match="rank 3 of 3"):
        DistributedSampler(DATA, 3, 3)
    drawn = WeightedSampler([1, 0, 3], 4000, seed=0).order(0)
    assert set(drawn) == {0, 2}
    assert abs((drawn == 2).mean() - 0.75) < 0.03
    with pytest.raises(DataError, match="weight"):
        WeightedSampler([0, 0])
