"""`export_wasm`: a function as one file of WebAssembly, for pages and for programs of JavaScript.

The function is traced for the shapes and dtypes of example arguments, as `export_native` does it; tensors that it
captures lie in the file. What comes out needs nothing: no import, no other file, no thread. `eshkol.js`, which is
written beside it where it is asked for, gives it arrays by their names; any engine can call it without.
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
    file = Path(path).absolute()
    if file.suffix != ".wasm":
        raise TensorError(f"a module is a file whose name ends in .wasm, not '{file.name}'", span=here())
    if not file.parent.is_dir():
        raise TensorError(f"there is no folder '{file.parent}' to write the module to", span=here())
    module, description = wasm_module(function, example_inputs, file.stem)
    try:
        with tempfile.NamedTemporaryFile(dir=file.parent, prefix=f".{file.stem}-", delete=False) as made:
            try:
                made.write(module)
                made.flush()
                Path(made.name).chmod(0o644)
                Path(made.name).replace(file)
            except OSError:
                Path(made.name).unlink(missing_ok=True)
                raise
    except OSError as error:
        raise BackendError(f"the module '{file}' cannot be written: {error.strerror}") from None
    return ExportedModule(file, description)


def wasm_module(function: Callable[..., Any], example_inputs: Any, name: str) -> tuple[bytes, dict[str, Any]]:
    """The same as bytes, with what they say of themselves."""
    from eshkol.backends.wasm.export import MACHINE, described, write_module

    args = tuple(example_inputs) if isinstance(example_inputs, tuple | list) else (example_inputs,)
    module = write_module(model_of(plain(function), args, name, MACHINE, "module"), name, {})
    return module, described(module)
