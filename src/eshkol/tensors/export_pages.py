"""`export_wasm` and `export_webgpu`: a function as a file for pages and for programs of JavaScript.

The function is traced for the shapes and dtypes of example arguments, as `export_native` does it; tensors that it
captures lie in the file. What `export_wasm` writes needs nothing: no import, no other file, no thread. `eshkol.js`,
which is written beside it where it is asked for, gives it arrays by their names; any engine can call it without.
What `export_webgpu` writes are kernels for the GPU of a browser (`gpu_kernels.py`), which `eshkol.js` runs.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eshkol.errors import BackendError, TensorError
from eshkol.graph.node import here
from eshkol.tensors.export import model_of, plain


@dataclass(frozen=True)
class ExportedModule:
    """What was written: the module, and what it says of itself (inputs, outputs, messages)."""

    module: Path
    description: Mapping[str, Any]


def export_wasm(function: Callable[..., Any], example_inputs: Any, path: str | os.PathLike[str]) -> ExportedModule:
    """Write the function as a module of WebAssembly with vectors of 128 bits.

    `example_inputs` are arguments of a call, in a tuple or list; a single tensor may stand by itself. Only shapes and
    dtypes of their tensors matter; other arguments are constants. `path` ends in .wasm.

    >>> ek.export_wasm(model, (ek.zeros((1, 784)),), "site/model.wasm")
    """
    file = _file(path, ".wasm", "module")
    module, description = wasm_module(function, example_inputs, file.stem)
    _write(file, module)
    return ExportedModule(file, description)


def _file(path: str | os.PathLike[str], ending: str, what: str) -> Path:
    """Where a file for pages goes; refused before anything is computed."""
    file = Path(path).absolute()
    if file.suffix != ending:
        raise TensorError(f"a {what} is a file whose name ends in {ending}, not '{file.name}'", span=here())
    if not file.parent.is_dir():
        raise TensorError(f"there is no folder '{file.parent}' to write the {what} to", span=here())
    return file


def _write(file: Path, data: bytes) -> None:
    """Write a file, whole or not at all."""
    try:
        with tempfile.NamedTemporaryFile(dir=file.parent, prefix=f".{file.stem}-", delete=False) as made:
            try:
                made.write(data)
                made.flush()
                Path(made.name).chmod(0o644)
                Path(made.name).replace(file)
            except OSError:
                Path(made.name).unlink(missing_ok=True)
                raise
    except OSError as error:
        raise BackendError(f"the file '{file}' cannot be written: {error.strerror}") from None


def wasm_module(function: Callable[..., Any], example_inputs: Any, name: str) -> tuple[bytes, dict[str, Any]]:
    """The same as bytes, with what they say of themselves."""
    from eshkol.backends.wasm.export import MACHINE, described, write_module

    args = tuple(example_inputs) if isinstance(example_inputs, tuple | list) else (example_inputs,)
    module = write_module(model_of(plain(function), args, name, MACHINE, "module"), name, {})
    return module, described(module)


@dataclass(frozen=True)
class ExportedKernels:
    """What was written: the file, and the line in it that says what inputs, outputs and launches there are."""

    kernels: Path
    description: Mapping[str, Any]


def export_webgpu(function: Callable[..., Any], example_inputs: Any, path: str | os.PathLike[str]) -> ExportedKernels:
    """Write the function as kernels for the GPU of a browser, beside the module that `export_wasm` writes.

    `example_inputs` are as for `export_wasm`; `path` ends in .webgpu. What a page cannot do on a GPU (float64, loops,
    branches, what the host computes) is refused by name.

    >>> ek.export_webgpu(model, (ek.zeros((1, 784)),), "site/model.webgpu")
    """
    file = _file(path, ".webgpu", "file of kernels")
    from eshkol.tensors.gpu_kernels import described, webgpu_kernels

    data = webgpu_kernels(function, example_inputs, file.stem)
    _write(file, data)
    return ExportedKernels(file, described(data))
