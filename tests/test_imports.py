"""The shape of the house: which package may import which, and what every module owes its reader.

The table below is the architecture page's "imports point one way", written down. Every import counts: at the
top, in a function, under TYPE_CHECKING, or by `import_module`. Inside a package there is no table, but no ring either.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Set
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeGuard

import pytest

from batches import of_each

SOURCE = Path(__file__).parents[1] / "src"
ROOT = SOURCE / "eshkol"
LINES_LIMIT = 600

LEARNING = {"nn", "losses", "optim", "data", "metrics", "train", "io"}
TENSORS = {"ops", "graph", "schedule", "tensors"}
LANGUAGE = {"lang", "types", "codegen", "runtime"}

# Package → the packages it may import. `eshkol` is the package root itself.
ALLOWED: Mapping[str, set[str]] = {
    "eshkol": {"version", "support", "tensors", "nn", "bindings", "jax", "profiling", "_names"},
    "_names": set(),  # a stub: what the tables say, for type checkers alone
    "version": set(),
    "errors": set(),
    "support": {"errors", "version"},
    # machine code, for kernels, Scheme code and derivatives; runtime: the linker
    "llvm": {"runtime", "support", "errors"},
    # the middle: programs, and the machines that run them
    "atlas": {"support", "errors"},
    "backends": {"atlas", "llvm", "runtime", "support", "errors"},  # runtime: the thread pool
    # tensors: graph knows no backends
    "ops": {"support", "errors"},
    "graph": {"ops", "runtime", "support", "errors"},  # runtime: the front door, in C
    "schedule": {"atlas", "graph", "ops", "runtime", "support", "errors"},
    "tensors": {"atlas", "backends", "schedule", "graph", "ops", "runtime", "support", "errors"},
    # kernels to be read and measured, by name: programs, tensors, and the machines that run them
    "kernels": {"atlas", "backends", "schedule", "graph", "ops", "tensors", "errors"},
    # the learning library stands on the tensor alone, and knows no backends
    "nn": {"tensors", "support", "errors"},
    "losses": {"tensors", "errors"},
    "optim": {"tensors", "nn", "support", "errors"},
    "data": {"tensors", "support", "errors"},
    "metrics": {"tensors", "support", "errors"},
    "jax": {"tensors", "errors"},  # JAX's names for what stands in tensors
    "io": {"tensors", "nn", "optim", "runtime", "version", "support", "errors"},  # runtime: the checksum, in C
    # what PyTorch has under these names, over what is there already
    **{name: {"tensors", "errors"} for name in ("linalg", "fft", "special", "cuda", "distributions")},
    "autograd": {"tensors", "errors"},
    "func": {"tensors", "nn", "errors"},
    "utils": {"tensors", "data", "errors"},
    "train": {"tensors", "support", "errors", *LEARNING - {"train"}},
    "parallel": {"tensors", "nn", "optim", "train", "support", "errors"},  # models on several machines
    "web": {"tensors", "nn", "data", "io", "errors"},  # models in pages
    # the language knows no tensors; lang takes tokens and tables from the runtime, and runs nothing
    "lang": {"runtime", "version", "support", "errors"},
    "types": {"lang", "runtime", "errors"},  # runtime: the table of primitives
    "project": {"lang", "version", "support", "errors"},  # eshkol.toml, and what it depends on
    "runtime": {"support", "errors"},
    "codegen": {"lang", "types", "llvm", "runtime", "support", "errors"},
    # the rules of the op table, for numbers, and the procedures of the language as typed programs
    "calculus": {"ops", "codegen", "lang", "llvm", "runtime", "version", "support", "errors"},
    "session": {"calculus", "llvm", "version", "support", "errors", *LANGUAGE},
    # programs that run without Python
    "executable": {"backends", "tensors", "session", "codegen", "lang", "llvm", "runtime", "support", "errors"},
    # what watches all of it at work; io: files that are whole; llvm: what names the machine
    "profiling": {"tensors", "schedule", "graph", "io", "llvm", "runtime", "support", "errors"},
    # where the two meet, and what stands on top of everything
    "bindings": {"session", "calculus", "profiling", "version", "support", "errors", *LANGUAGE, *TENSORS, *LEARNING},
    # what a machine is compared by; only the command and tests call it; train: the progress bar
    "conformance": {"atlas", "backends", "train", "version", "errors", *TENSORS},
    "__main__": {"cli"},
    "cli": {
        *("eshkol", "version", "support", "errors", "atlas", "backends", "bindings", "conformance", "jax", "llvm"),
        *("executable", "profiling", "project", "session", "web"),
        *(LANGUAGE | TENSORS | LEARNING),
    },
}


def unit_of(module: str) -> str:
    """The package (or module beside them) of `eshkol` that a dotted name belongs to."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "eshkol"


class Read(NamedTuple):
    """What is looked at of a module's text; the tree of a thousand modules is more than should be kept."""

    docstring: str | None
    importing: list[ast.Import | ast.ImportFrom | ast.Call]  # wherever they stand


@cache
def read(text: str) -> Read:
    tree = ast.parse(text)
    return Read(ast.get_docstring(tree), [node for node in ast.walk(tree) if is_import(node)])


def is_import(node: ast.AST) -> TypeGuard[ast.Import | ast.ImportFrom | ast.Call]:
    if isinstance(node, ast.Call) and node.args:
        function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return function in ("import_module", "__import__")
    return isinstance(node, ast.Import | ast.ImportFrom)


def imported(module: str, is_package: bool, text: str, units: Set[str]) -> Iterator[tuple[str, int]]:
    """The project's modules that a module imports, each with its line."""

    def named(base: str, names: list[ast.alias], line: int) -> Iterator[tuple[str, int]]:
        for alias in names:  # `from eshkol import atlas` imports a package, `from eshkol import __version__` a name
            below = f"{base}.{alias.name}"
            yield (below if base == "eshkol" and unit_of(below) in units else base), line

    for node in read(text).importing:
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names if alias.name.split(".")[0] == "eshkol")
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                around = module.split(".")
                around = around[: len(around) - node.level + is_package]
                base = ".".join([*around, *([node.module] if node.module else [])])
            if base.split(".")[0] == "eshkol":
                yield from named(base, node.names, node.lineno)
        else:
            first = node.args[0].values[0] if isinstance(node.args[0], ast.JoinedStr) else node.args[0]
            if isinstance(first, ast.Constant):
                name = str(first.value).rstrip(".")
                if name.split(".")[0] == "eshkol":
                    yield name, node.lineno


@cache
def imports_of(module: str, is_package: bool, text: str, units: frozenset[str]) -> list[tuple[str, int]]:
    """The same of a module's text, which several tests look at."""
    return list(imported(module, is_package, text, units))


def edges(sources: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """(package, package it imports, where) for every import that leaves its package.

    `sources` maps dotted module names to source text; a package's own text goes under `name.__init__`.
    """
    units = {unit_of(name.removesuffix(".__init__")) for name in sources} | set(ALLOWED)
    for name, text in sources.items():
        module = name.removesuffix(".__init__")
        for target, line in imports_of(module, module != name, text, frozenset(units)):
            if unit_of(target) != unit_of(module):
                yield unit_of(module), unit_of(target), f"{name}:{line}"


def violations(sources: Mapping[str, str]) -> list[str]:
    """One line for every import that the table does not allow, and for every package it does not know."""
    known = sorted({unit_of(name.removesuffix(".__init__")) for name in sources} - set(ALLOWED))
    found = [f"package '{unit}' is new: add it to ALLOWED in {Path(__file__).name}" for unit in known]
    for unit, target, where in edges(sources):
        if unit in ALLOWED and target not in ALLOWED[unit]:
            found.append(f"{where}: {unit} must not import {target}")
    return found


def cycle(graph: Mapping[str, set[str]]) -> list[str] | None:
    """Packages that import one another in a ring, or None."""
    done: set[str] = set()

    def visit(unit: str, path: list[str]) -> list[str] | None:
        if unit in path:
            return [*path[path.index(unit) :], unit]
        if unit in done:
            return None
        for target in sorted(graph.get(unit, ())):
            ring = visit(target, [*path, unit])
            if ring is not None:
                return ring
        done.add(unit)
        return None

    return next((ring for unit in sorted(graph) if (ring := visit(unit, [])) is not None), None)


def project() -> dict[str, str]:
    """Every module under src/eshkol, by its dotted name."""
    paths = sorted(ROOT.rglob("*.py"))
    return {".".join(path.relative_to(SOURCE).with_suffix("").parts): path.read_text("utf-8") for path in paths}


PROJECT = project()


# --- the project ------------------------------------------------------------------------------------


def test_imports_point_one_way():
    assert not violations(PROJECT)


def test_the_front_of_the_language_knows_no_running_machine():
    modules = {name: text for name, text in PROJECT.items() if unit_of(name) == "lang"}
    targets = {target for name, text in modules.items() for target, _ in imported(name, False, text, set(ALLOWED))}
    assert "eshkol.runtime.scheme" not in targets


def test_llvm_is_set_up_in_one_place():
    importing = {
        name for name, text in PROJECT.items() if re.search(r"^\s*(import|from) llvmlite\b", text, re.MULTILINE)
    }
    assert importing == {"eshkol.llvm.targets"}


def test_no_cycles_among_packages():
    graph: dict[str, set[str]] = {}
    for unit, target, _ in edges(PROJECT):
        graph.setdefault(unit, set()).add(target)
    assert cycle(graph) is None


def modules_imported(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """The modules that each module imports itself; a package stands for what its `__init__` holds."""
    modules = {name.removesuffix(".__init__") for name in sources}
    graph: dict[str, set[str]] = {}
    for name, text in sources.items():
        module = name.removesuffix(".__init__")
        found = graph.setdefault(module, set())
        for node in read(text).importing:
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                below = {f"{node.module}.{alias.name}" for alias in node.names}
                found |= {b if b in modules else node.module for b in below}
            elif isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
        found &= modules - {module}
    return graph


def test_no_cycles_among_modules():
    assert cycle(modules_imported(PROJECT)) is None


def test_a_cycle_among_modules_is_found_wherever_the_imports_stand():
    one = "def f():\n    from eshkol.nn import two"
    two = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from eshkol.nn.one import f"
    sources = {"eshkol.nn.one": one, "eshkol.nn.two": two}
    assert cycle(modules_imported(sources)) == ["eshkol.nn.one", "eshkol.nn.two", "eshkol.nn.one"]
    assert cycle(modules_imported(sources | {"eshkol.nn.two": "import math"})) is None


def test_the_table_itself_has_no_cycle_and_no_stranger():
    assert cycle(ALLOWED) is None
    assert not {target for targets in ALLOWED.values() for target in targets} - set(ALLOWED)


@of_each("name", PROJECT)
def test_every_module_says_what_it_is_and_stays_short(name):
    text = PROJECT[name]
    assert read(text).docstring, f"{name} has no docstring"
    assert text.count("\n") < LINES_LIMIT, f"{name} has {text.count(chr(10))} lines; split it before {LINES_LIMIT}"


# --- what an import costs ---------------------------------------------------------------------------

PROBE = """
import sys, time
began = time.process_time()
import {module}
print(time.process_time() - began, *(name for name in ("numpy", "llvmlite", "rich") if name in sys.modules))
"""


def probe(module: str) -> tuple[float, set[str]]:
    """The seconds an import takes, and which heavy packages came with it.

    CPU time, and the best of three: other tests run beside this one, and waiting for them is not its cost.
    """
    seconds, heavy = [], set()
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", PROBE.format(module=module)],
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
            capture_output=True,
            text=True,
            check=True,
        )
        first, *names = done.stdout.split()
        seconds.append(float(first))
        heavy.update(names)
    return min(seconds), heavy


@pytest.mark.parametrize("module", ["eshkol", "eshkol.cli.main"])
def test_importing_is_quick_and_light(module):
    seconds, heavy = probe(module)
    assert not heavy
    assert seconds < 0.2


# --- the checker ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "import eshkol.backends.base",
        "import numpy, eshkol.backends",
        "from eshkol.backends import open_backend",
        "from eshkol import backends",
        "from ..backends import base",
        "from .. import backends",
        "def f():\n    from eshkol.backends.base import Backend",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from eshkol.backends.base import Backend",
        "from importlib import import_module\nimport_module('eshkol.backends.cpu')",
        "import importlib\nname = 'cpu'\nimportlib.import_module(f'eshkol.backends.{name}')",
    ],
)
def test_a_forbidden_import_is_found(text):
    sources = {"eshkol.atlas.__init__": "", "eshkol.atlas.text": text, "eshkol.backends.__init__": ""}
    (line,) = violations(sources)
    assert line == f"eshkol.atlas.text:{text.count(chr(10)) + 1}: atlas must not import backends"


def test_relative_imports_in_a_package_are_resolved_from_the_package():
    own = {"eshkol.atlas.__init__": "from . import types\nfrom .types import Type\nfrom ..errors import IsaError"}
    assert not violations(own)
    deep = {"eshkol.atlas.table.__init__": "from ...backends import base", "eshkol.backends.__init__": ""}
    assert violations(deep) == ["eshkol.atlas.table.__init__:1: atlas must not import backends"]


@pytest.mark.parametrize(
    "text",
    [
        "import numpy\nfrom pathlib import Path",
        "from eshkol.errors import IsaError",
        "from eshkol import errors",
        "from eshkol.atlas.types import Type",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from eshkol.atlas.builder import ProgramBuilder",
        "import eshkolite\nfrom eshkolite.backends import x",
    ],
)
def test_an_allowed_import_is_not_reported(text):
    assert not violations({"eshkol.atlas.text": text, "eshkol.errors": ""})


@pytest.mark.parametrize(
    ("module", "target"),
    [("lang.reader", "tensors"), ("graph.node", "backends"), ("nn.linear", "backends"), ("ops.table", "graph")],
)
def test_packages_to_come_are_in_the_table(module, target):
    sources = {f"eshkol.{module}": f"import eshkol.{target}"}
    assert violations(sources) == [f"eshkol.{module}:1: {module.split('.')[0]} must not import {target}"]


def test_an_unknown_package_is_told_what_to_do():
    (line,) = violations({"eshkol.surprise.__init__": ""})
    assert line == "package 'surprise' is new: add it to ALLOWED in test_imports.py"


def test_a_cycle_is_found():
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == ["a", "b", "c", "a"]
    assert cycle({"a": {"b", "c"}, "b": {"c"}}) is None
