"""Files against the libraries whose formats they are, where those are installed: PyTorch, safetensors, msgpack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eshkol as ek
from eshkol.io.msgpack import pack, unpack

DTYPES = (
    "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
    "float64", "complex64", "complex128", "bool",
)  # fmt: skip


def same(theirs: Any, ours: Any, where: str = "") -> None:
    import torch

    if isinstance(theirs, torch.Tensor):
        assert str(theirs.dtype).split(".")[1] == ours.dtype.name.rstrip("_"), where
        assert tuple(theirs.shape) == ours.shape, where
        wide = theirs.detach().to(torch.float32) if theirs.dtype == torch.bfloat16 else theirs.detach()
        found = ours.numpy().astype(np.float32) if theirs.dtype == torch.bfloat16 else ours.numpy()
        assert np.array_equal(wide.numpy(), found), where
    elif isinstance(theirs, dict):
        assert list(theirs) == list(ours), where
        for key in theirs:
            same(theirs[key], ours[key], f"{where}/{key}")
    elif isinstance(theirs, list | tuple):
        for a, b in zip(theirs, ours, strict=True):
            same(a, b, where)
    else:
        assert theirs == ours, where


def test_pytorch_checkpoints_with_an_optimizer(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Flatten(),
                                torch.nn.LazyLinear(2))  # fmt: skip
    model(torch.randn(2, 3, 5, 5))  # the lazy layer is made
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    model(torch.randn(2, 3, 5, 5)).sum().backward()
    optimizer.step()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}
    state |= {d: torch.arange(6).reshape(2, 3).to(getattr(torch, d)) for d in DTYPES}
    for mapped in (False, True):
        torch.save(state, tmp_path / "a.pt")
        same(state, ek.io.load_pytorch(tmp_path / "a.pt", mmap=mapped))


def test_safetensors_both_ways(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    theirs = pytest.importorskip("safetensors.torch")
    tensors = {d: torch.arange(6).reshape(2, 3).to(getattr(torch, d)) for d in DTYPES if d != "complex128"}
    tensors |= {"number": torch.tensor(1.5), "empty": torch.zeros(0, 2)}
    theirs.save_file(tensors, tmp_path / "a", metadata={"k": "v"})
    ours = ek.io.load_safetensors(tmp_path / "a")
    same(tensors, {name: ours[name] for name in tensors})
    ek.io.save_safetensors(tmp_path / "b", ours, metadata={"k": "v"})
    again = theirs.load_file(tmp_path / "b")
    same(again, {name: ours[name] for name in again})
    assert set(again) == set(tensors)


def test_msgpack_both_ways() -> None:
    msgpack = pytest.importorskip("msgpack")
    edges = [n for k in (5, 7, 8, 15, 16, 31, 32, 63) for n in ((1 << k) - 1, 1 << k, -(1 << k), -(1 << k) - 1)]
    values: list[Any] = [None, True, False, 1.5, -0.0, *(n for n in edges if -(1 << 63) <= n < 1 << 64)]
    for size in (0, 15, 16, 31, 32, 255, 256, 65_535, 65_536):
        values += ["é" * size, b"b" * size, list(range(size)), {str(k): k for k in range(size)}]
    for value in values:
        assert pack(value) == msgpack.packb(value)
        assert unpack(msgpack.packb(value, use_single_float=True)) == value


def test_zstandard_reads_what_the_system_wrote_and_the_other_way() -> None:
    zstandard = pytest.importorskip("zstandard")
    from eshkol.io import zstd

    data = np.random.default_rng(0).integers(0, 5, 100_000, np.uint8)
    package = zstd._of_package(zstandard)
    for compress in (package.compress, zstd._library().compress):
        for decompress in (package.decompress, zstd._library().decompress):
            out = np.empty_like(data)
            frame = np.frombuffer(compress(data, 3), np.uint8)
            assert decompress(frame, out) == data.size
            assert np.array_equal(out, data)
            assert decompress(frame[:-5], np.empty_like(data)) == -1
