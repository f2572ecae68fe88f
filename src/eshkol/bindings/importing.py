"""`import model` runs model.esk: what Python's last finder (in the package's root) gives for a file that it has found.

A file is looked for on `sys.path`, or in the folders of its package, when nothing else knows the module: `import
nets.small_net` finds nets/small_net.esk, or nets/small-net.esk. Comes in: the name of a module and its file. Goes out:
a spec whose loader runs the file.
"""

from __future__ import annotations

from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from eshkol.bindings.modules import SchemeModule, run_in


def make_spec(name: str, path: str) -> ModuleSpec:
    spec = ModuleSpec(name, SchemeLoader(path), origin=path)
    spec.has_location = True
    return spec


class SchemeLoader(Loader):
    """Runs one file; `importlib.reload` runs it again in the same module."""

    def __init__(self, path: str) -> None:
        self.path = path

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return SchemeModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        run_in(module, self.path)

    def get_filename(self, name: str) -> str:
        return self.path

    def get_source(self, name: str) -> str:
        return Path(self.path).read_text(encoding="utf-8")
