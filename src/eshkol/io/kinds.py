"""`ek.save` and `ek.load`: files of tensors by the kind of file that their names say.

Comes in: a path, or an open binary file, which is one of PyTorch's. Goes out: what was saved: `.pt` and `.pth` hold
dicts and lists of tensors, numbers and strings, `.safetensors` and `.npz` tensors by name, `.npy` one tensor, `.eskpt`
a state. No code of a file is run: pickles are walked.
"""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from eshkol.errors import CheckpointError
from eshkol.io.checkpoint import load_state, save_state
from eshkol.io.eskpt import as_array
from eshkol.io.files import Path, replacing
from eshkol.io.npz import load_npz, save_npz
from eshkol.io.pytorch import load_pytorch
from eshkol.io.pytorch_writing import write_pytorch
from eshkol.io.safetensors import load_safetensors, save_safetensors
from eshkol.nn.module import Module
from eshkol.tensors import api as ek
from eshkol.tensors.pytree import tree_map
from eshkol.tensors.value import Tensor

PYTORCH = (".pt", ".pth", ".bin", ".ckpt")


def _save_pytorch(path: Path, value: Any) -> None:
    buffer = io.BytesIO()
    write_pytorch(value, buffer, "save")
    with replacing(path, "save") as file:
        file.write(buffer.getvalue())


def _save_npy(path: Path, value: Any) -> None:
    with replacing(path, "save") as file:
        np.save(file, as_array(value, "tensor", "save"), allow_pickle=False)


def _load_npy(path: Path) -> Any:
    try:
        return ek.tensor(np.load(path, allow_pickle=False))
    except (ValueError, EOFError) as error:
        raise CheckpointError(f"load: {os.fspath(path)!r} is no .npy file of numbers: {error}") from None


def _by_name(save: Callable[[Path, Mapping[str, Any]], None]) -> Callable[[Path, Any], None]:
    def checked(path: Path, value: Any) -> None:
        if not isinstance(value, Mapping):
            raise CheckpointError(
                f"save: {os.fspath(path)!r} holds tensors by name, and this is a {type(value).__name__}",
                span=ek.here(), hint='write ek.save({"x": x}, path), or save it as .pt or .npy',
            )  # fmt: skip
        save(path, value)

    return checked


SAVING: dict[str, Callable[[Path, Any], None]] = {
    **dict.fromkeys(PYTORCH, _save_pytorch),
    ".safetensors": _by_name(save_safetensors),
    ".npz": _by_name(save_npz),
    ".npy": _save_npy,
    ".eskpt": _by_name(lambda path, value: save_state(value, path, who="save")),
}
LOADING: dict[str, Callable[[Path], Any]] = {
    **dict.fromkeys(PYTORCH, load_pytorch),
    ".safetensors": load_safetensors,
    ".npz": load_npz,
    ".npy": _load_npy,
    ".eskpt": load_state,
}


def _suffix(path: Any, who: str) -> str:
    suffix = str(os.path.splitext(os.fspath(path))[1]).lower()
    if suffix not in SAVING:
        raise CheckpointError(
            f"{who}: what kind of file is {os.fspath(path)!r}?", span=ek.here(),
            hint=f"its name ends in {', '.join(SAVING)}",
        )  # fmt: skip
    return suffix


def save(obj: Any, f: Any) -> None:
    """Save tensors to a file of the kind that its name says: .pt, .safetensors, .npz, .npy or .eskpt.

    >>> ek.save(model.state_dict(), "weights.pt")
    """
    if isinstance(obj, Module):
        raise CheckpointError(
            f"save: a {type(obj).__name__} is code and numbers, and a file holds the numbers", span=ek.here(),
            hint="ek.save(model.state_dict(), path), or ek.save_checkpoint(path, model)",
        )  # fmt: skip
    if hasattr(f, "write"):
        write_pytorch(obj, f, "save")
    else:
        SAVING[_suffix(f, "save")](f, obj)


def load_file(f: Any, map_location: Any = None, *, weights_only: bool = True, mmap: bool | None = None) -> Any:
    """What `save` has written, or PyTorch, NumPy and others; `map_location` is the device that tensors go to."""
    if not weights_only:
        raise CheckpointError(
            "load: weights_only=False would run code of the file, and nothing of a pickle is executed", span=ek.here(),
            hint="save the tensors alone: torch.save(model.state_dict(), path)",
        )  # fmt: skip
    if hasattr(f, "read"):
        with tempfile.NamedTemporaryFile(suffix=".pt") as file:
            file.write(f.read())
            file.flush()
            found = load_pytorch(file.name)
    else:
        if not os.path.exists(f):
            raise CheckpointError(f"load: there is no file {os.fspath(f)!r}", span=ek.here())
        found = LOADING[_suffix(f, "load")](f)
    if map_location is None:
        return found
    return tree_map(lambda x: x.to(map_location) if isinstance(x, Tensor) else x, found)
