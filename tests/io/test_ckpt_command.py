"""`eshkol ckpt ls|diff|verify`: what they print, and their exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import eshkol as ek
from eshkol import nn
from eshkol.cli.main import main


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.eskpt"
    state = {
        "model": {"encoder.weight": np.ones((2, 3), np.float32), "bell\x1b[31m": np.array([True])},
        "optimizer": {"state": {0: {"m": np.zeros(1000)}}}, "step": 7, "metadata": {"lr": 0.1},
    }  # fmt: skip
    ek.io.save_state(state, path, compress=True)
    return path


def test_ls(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ckpt", "ls", str(file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["encoder.weight", "float32[2,", "3]", "24", "bytes"]
    assert lines[1].startswith("bell\\x1b[31m ")  # no terminal obeys a name
    assert "zstd" in lines[2]
    assert lines[3].startswith("3 tensors, 1007 numbers, 7.837 KiB")
    assert [line.strip() for line in lines[4:]] == [
        "model: 2 tensors", "optimizer: 1 tensor", "step: 7", "metadata: {'lr': 0.1}",
    ]  # fmt: skip
    assert main(["ckpt", "ls", str(file), "enc*", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [t["name"] for t in found["tensors"]] == ["encoder.weight"]
    assert found["tensors"][0]["shape"] == [2, 3]
    assert found["parts"]["step"] == "7"
    assert main(["ckpt", "ls", str(file), "decoder"]) == 1
    assert capsys.readouterr().err.startswith(f"error: '{file}' has no tensor 'decoder'\nhint: ")


def test_ls_whose_reader_has_gone_is_quiet(file: Path) -> None:
    command = [sys.executable, "-m", "eshkol", "ckpt", "ls", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait(60) == 141


def test_ls_says_what_can_be_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Own(nn.Linear):
        pass

    own, model = Own(2, 1), nn.Sequential(nn.Linear(2, 1))
    for given, optimizer, said in (
        (model, ek.optim.Adam(model.parameters()), "architecture: Sequential with Adam"),
        (own, None, "architecture: no model: it is of class Own, which a file does not know how to make"),
    ):
        ek.save_checkpoint(tmp_path / "a.eskpt", given, optimizer)
        assert main(["ckpt", "ls", str(tmp_path / "a.eskpt")]) == 0
        assert said in capsys.readouterr().out
    for strange in (3, {"model": {"made": [1]}, "unknown": {"optimizer": "\x1b[31m"}}):
        ek.io.save_state({"architecture": strange}, tmp_path / "a.eskpt")
        assert main(["ckpt", "ls", str(tmp_path / "a.eskpt")]) == 0
        assert "\x1b" not in capsys.readouterr().out


def test_diff(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "b.eskpt"
    weight = np.ones((2, 3), np.float32)
    weight[0, 0], weight[1, 1] = 1.5, 1.25
    state = {
        "model": {"encoder.weight": weight, "new": np.ones(2)}, "optimizer": {"state": {0: {"m": np.zeros(999)}}},
        "step": 8,
    }  # fmt: skip
    ek.io.save_state(state, other)
    assert main(["ckpt", "diff", str(file), str(other)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "~ encoder.weight  2 of 6 numbers differ, by up to 0.5",
        "- bell\\x1b[31m  bool[1]",
        "~ optimizer/state/0/m  float64[1000] became float64[999]",
        "+ new  float64[2]",
        "- model/bell\\x1b[31m: 1 tensor",
        "+ model/new: 1 tensor",
        "~ step: 7 became 8",
        "- metadata: {'lr': 0.1}",
    ]
    assert main(["ckpt", "diff", str(file), str(file)]) == 0
    assert capsys.readouterr().out == "no difference\n"


def test_diff_within_a_tolerance(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, values in (("a", [1.0, np.nan, np.inf]), ("b", [1.0 + 1e-9, np.nan, np.inf])):
        ek.io.save_tensors(tmp_path / name, {"x": np.array(values)})
    paths = [str(tmp_path / "a"), str(tmp_path / "b")]
    assert main(["ckpt", "diff", *paths]) == 1
    assert "1 of 3 numbers differ" in capsys.readouterr().out
    assert main(["ckpt", "diff", *paths, "--tolerance", "1e-6"]) == 0


def test_verify(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ckpt", "verify", str(file)]) == 0
    assert capsys.readouterr().out.startswith(f"{file}: whole, 3 tensors")
    broken = tmp_path / "broken"
    data = bytearray(file.read_bytes())
    with ek.io.load_checkpoint(file) as opened:
        data[opened.tensors["encoder.weight"].offset + 3] ^= 1
    broken.write_bytes(data)
    assert main(["ckpt", "verify", str(broken), str(file), str(tmp_path / "none")]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "damaged: tensor 'encoder.weight'" in lines[0]
    assert "whole" in lines[1]
    assert "no such file" in lines[2]


@pytest.mark.parametrize("words", [["ckpt"], ["ckpt", "ls", "--help"], ["ckpt", "diff", "--help"]])
def test_help(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "usage: eshkol ckpt" in said
    assert "examples:" in said
    assert main(["ckpt", "ls"]) == 2
