"""Writes the files of other libraries that the tests read: with PyTorch and safetensors, by hand, once.

python tests/io/make_references.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "references"
DTYPES = (
    "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
    "float64", "complex64", "complex128", "bool",
)  # fmt: skip


def contents() -> dict[str, Any]:
    """What is in state.pt, with PyTorch's tensors."""
    import torch

    base = torch.arange(24.0).reshape(4, 6)
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    with torch.no_grad():
        for k, value in enumerate(model.state_dict().values()):
            value.copy_((torch.arange(value.numel()) + k).reshape(value.shape))
    state = {
        "model": model.state_dict(), "epoch": 3, "transposed": base.T, "part": base[1:3, 2:5],
        "number": torch.tensor(2.5), "empty": torch.zeros(0, 3), "parameter": torch.nn.Parameter(torch.ones(2)),
        "nothing": None, "plain": [1, "a", 2.5, True, b"xy", (-1, 1 << 40)], "size": base.shape,
    }  # fmt: skip
    return state | {f"of {d}": torch.arange(2).to(getattr(torch, d)) for d in DTYPES}


def main() -> None:
    import torch
    from safetensors.torch import save_file

    FOLDER.mkdir(exist_ok=True)
    torch.save(contents(), FOLDER / "state.pt")
    torch.save(torch.nn.Linear(1, 1), FOLDER / "model.pt")
    torch.save({"a": torch.ones(1)}, FOLDER / "old.pt", _use_new_zipfile_serialization=False)
    torch.save(torch.zeros(1).expand(1000, 1000), FOLDER / "repeated.pt")
    tensors = {name: x.contiguous() for name, x in contents().items() if isinstance(x, torch.Tensor)}
    del tensors["parameter"], tensors["of complex128"]
    save_file(tensors, FOLDER / "tensors.safetensors", metadata={"by": "safetensors"})


if __name__ == "__main__":
    main()
