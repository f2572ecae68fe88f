"""Eshkol: write a numerical program once, differentiate it, and run it fast anywhere.

    import eshkol as ek
    ek.grad(lambda x: (x * x).sum())(ek.tensor([1.0, 2.0]))

The package root stays light: tensors and their functions are imported when the first of them is asked for, so that
`import eshkol` costs next to nothing.
"""

from __future__ import annotations

import sys

from eshkol.version import __version__

TYPE_CHECKING = False  # as in typing, which the command need not wait for: until it runs, Ctrl-C shows a traceback
if TYPE_CHECKING:
    from typing import Any

    from eshkol._names import *  # noqa: F403  (every public name with its type, for editors; see cli/stubs.py)
else:
    __all__ = ["__version__"]

_ELSEWHERE = {  # names of packages that come when they are asked for: the language without the tensors, and so on
    "eval": ("bindings.evaluate", "evaluate"),
    **{
        name: ("bindings.sizes", name)
        for name in (
            "check_shapes",
            "shaped",
            "Float16",
            "BFloat16",
            "Float32",
            "Float64",
            "Int8",
            "Int16",
            "Int32",
            "Int64",
            "UInt8",
            "Bool",
            "Complex64",
            "Complex128",
        )
    },
    "block_until_ready": ("jax.functions.devices", "block_until_ready"),
    "device_get": ("jax.functions.devices", "device_get"),
    "jnp": ("jax", "numpy"),
    "lax": ("jax", "lax"),
    "autocast": ("nn.torch_layers", "autocast"),
    "functional_call": ("nn.functional", "functional_call"),
    "get_num_threads": ("runtime.scheduler", "expected_workers"),
    "load": ("bindings.loading", "load"),
    "load_checkpoint": ("io.checkpoint", "load_checkpoint"),
    "load_ipython_extension": ("bindings.notebook.magics", "load_ipython_extension"),
    "parallel_map": ("bindings.parallel", "parallel_map"),
    "profile": ("profiling.context", "profile"),
    "save": ("io.kinds", "save"),
    "save_checkpoint": ("io.checkpoint", "save_checkpoint"),
    "set_num_threads": ("runtime.scheduler", "set_default_workers"),
    "tree": ("jax", "tree"),
    "tree_util": ("jax", "tree_util"),
    "unload_ipython_extension": ("bindings.notebook.magics", "unload_ipython_extension"),
    "_language": ("bindings.language", "language"),
}
_PACKAGES = (  # of ours, for users; `dir` shows them, and each is imported when it is asked for
    "atlas", "data", "io", "jax", "kernels", "lang", "metrics", "nn", "optim", "parallel", "train",
)  # fmt: skip


class _SchemeFiles:
    """What `import` asks when nothing else knows a module: `import model` runs model.esk (bindings/importing.py).

    It is asked in the midst of other imports, and imports nothing itself before it has found a file.
    """

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        import os

        stem = name.rpartition(".")[2]
        for folder in sys.path if path is None else path:
            for file in (f"{stem}.esk", f"{stem.replace('_', '-')}.esk"):
                if isinstance(folder, str) and os.path.isfile(os.path.join(folder, file)):
                    from eshkol.bindings.importing import make_spec

                    return make_spec(name, os.path.abspath(os.path.join(folder, file)))
        return None


if _SchemeFiles.__name__ not in [getattr(finder, "__name__", "") for finder in sys.meta_path]:
    sys.meta_path.append(_SchemeFiles)


def _uncaught(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    """What Python calls for an exception that no one caught: those of Eshkol are shown without its own frames."""
    if "eshkol.errors" in sys.modules:  # else it is none of ours
        from eshkol.support.tracebacks import show

        return show(kind, error, trace)
    return sys.__excepthook__(kind, error, trace)


if sys.excepthook is sys.__excepthook__:  # no one else has a way of showing them
    sys.excepthook = _uncaught


if "IPython" in sys.modules:  # a notebook, or IPython's prompt, which shows errors by itself
    from eshkol.support.tracebacks import show_in_ipython

    show_in_ipython(sys.modules["IPython"].get_ipython())


if not TYPE_CHECKING:  # else every name would pass for one of ours

    def __getattr__(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        from eshkol.support.collector import without_collector

        with without_collector():  # of what imports make, nearly everything stays: that saves a sixth of their time
            return _found(name)

    def _found(name: str) -> Any:
        from importlib import import_module
        from importlib.util import find_spec

        if name in _ELSEWHERE:
            module, attribute = _ELSEWHERE[name]
            return globals().setdefault(name, getattr(import_module(f"eshkol.{module}"), attribute))
        if find_spec(f"{__name__}.{name}") is not None:  # a package of ours: `ek.atlas`
            return import_module(f"{__name__}.{name}")
        from eshkol.tensors import NAMES

        if name in NAMES:
            return globals().setdefault(name, NAMES[name])  # found at once from now on
        if name in _of_numpy():
            return globals().setdefault(name, getattr(import_module("eshkol.jax.numpy"), name))
        from eshkol.jax.missing import MISSING
        from eshkol.tensors.sizes import no_attribute

        if name in MISSING[""]:
            raise AttributeError(f"eshkol has no '{name}': {MISSING[''][name]}")
        raise no_attribute(name, NAMES, "eshkol")


def _of_numpy() -> set[str]:
    """Names of NumPy's that PyTorch does not have: `ek.array`, `ek.percentile`, `ek.interp`; they stand in `ek.jnp`."""
    from eshkol.jax import numpy
    from eshkol.tensors import NAMES
    from eshkol.tensors.sizes import REMEDIES

    return {*numpy.__all__} - {*NAMES} - {*REMEDIES}


def __dir__() -> list[str]:
    from eshkol.tensors import NAMES

    elsewhere = (name for name in _ELSEWHERE if not name.startswith("_"))
    return sorted({"__version__", *NAMES, *_of_numpy(), *_PACKAGES, *elsewhere})
