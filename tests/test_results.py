"""docs/results.md: the page follows from its record, results are as good as is asked, and all of CIFAR-10 is learned
from where a user points to it."""

from __future__ import annotations

import shutil
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from eshkol import nn

ROOT = Path(__file__).parents[1]
RECORD = 3073  # bytes of a class and an image


@pytest.fixture
def results(monkeypatch, tmp_path):
    """bench.results, which writes to a folder of the test, and finds no data but there."""
    monkeypatch.syspath_prepend(str(ROOT))
    module = import_module("bench.results")
    for name in ("results.json", "results.md"):
        shutil.copy(ROOT / "docs" / name, tmp_path)
    monkeypatch.setattr(module, "KEPT", tmp_path / "results.json")
    monkeypatch.setattr(module, "PAGE", tmp_path / "results.md")
    monkeypatch.setattr(module, "DATA", tmp_path)
    monkeypatch.setattr(module, "seconds_per_step", lambda name, batch: 0.5)
    return module


def test_the_page_is_that_of_the_record_and_all_are_good(results):
    kept = results.kept()
    assert set(results.TASKS) <= set(kept)
    assert all(result.good for result in kept.values())
    rows = [kept[name] for name in results.ROWS if name in kept]
    assert len(rows) == len(kept), "every row has its place"
    assert (ROOT / "docs" / "results.md").read_text("utf-8") == results.page(rows)


def test_data_that_is_missing_is_told_and_what_was_seen_stays(results, capsys, tmp_path):
    assert results.main(["mnist-mlp", "cifar10", "gpt"]) == 0
    said = capsys.readouterr().out
    assert said.count("left out") == 3
    assert "data_batch_1.bin" in said
    assert str(tmp_path / "cifar-10-batches-bin") in said
    assert (tmp_path / "results.md").read_text("utf-8") == (ROOT / "docs" / "results.md").read_text("utf-8")
    assert results.main(["cifar11"]) == 2


def cifar_as_its_archive(folder: Path, images: int) -> None:
    """Files as the archive of CIFAR-10 has them, of images whose brightness says their class."""
    below, draw = folder / "cifar-10-batches-bin", np.random.default_rng(0)
    below.mkdir()
    for name in (*(f"data_batch_{k}" for k in range(1, 6)), "test_batch"):
        rows = np.empty((images, RECORD), np.uint8)
        rows[:, 0] = np.arange(images) % 10
        rows[:, 1:] = 20 * rows[:, :1] + draw.integers(0, 20, (images, RECORD - 1))
        (below / f"{name}.bin").write_bytes(rows.tobytes())


def learn_all_of_cifar(results, monkeypatch, folder, images: int, batch: int) -> str:
    """Train on a small set with the layout of the large one, for an epoch; gives the page."""
    cifar_as_its_archive(folder, images)
    monkeypatch.setattr(results, "WHOLE", 5 * images)
    whole = results.classifier
    monkeypatch.setattr(
        results, "classifier", lambda *given, **how: whole(*given, **how | {"epochs": 1, "batch": batch})
    )
    assert results.main(["cifar10"]) == 1, "nothing is learned so fast"
    found = results.kept()["cifar10-whole"]
    assert (found.wanted, found.torch_seconds) == (0.8, 0.5 * (5 * images // batch))
    assert results.kept()["cifar10"].good, "the row of the few images stays"
    return str(results.PAGE.read_text("utf-8"))


def test_all_of_cifar_becomes_a_row_of_its_own(results, monkeypatch, tmp_path):
    monkeypatch.setattr(results, "cifar_model", lambda: nn.Sequential(nn.Flatten(), nn.Linear(3072, 10)))
    page = learn_all_of_cifar(results, monkeypatch, tmp_path, images=10, batch=10)
    assert "| cifar10-whole |" in page
    assert "has not been seen here" not in page


@pytest.mark.slow
def test_the_network_for_all_of_cifar_makes_steps(results, monkeypatch, tmp_path):
    assert "| cifar10-whole |" in learn_all_of_cifar(results, monkeypatch, tmp_path, images=16, batch=16)
