"""Types for editors and type checkers: stubs of what is made of tables when the package is imported.

python -m eshkol.cli.stubs src/eshkol

Comes in: the op table and the tables of public names. Goes out: `_names.pyi` (what `ek.` offers), `tensors/methods.pyi`
(methods of `Tensor`), and a stub beside each module whose names are a table (`MODULES`). A function of a row is written
from its signature, with an overload where an argument decides what it gives; a function, class or module that someone
wrote is imported. Built-in types are written with their module, as `ek.bool` and methods such as `x.float` shadow them.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
import types
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import eshkol
from eshkol.ops.calls import Type
from eshkol.ops.dtypes import DType
from eshkol.ops.operators import Operators
from eshkol.ops.row import Op
from eshkol.tensors.functions import FUNCTIONS
from eshkol.tensors.value import Tensor

LONGEST = 120
MODULES = (  # whose names are a table; `__init__` where it is a package
    "tensors.random", "jax.__init__", "jax.lax", "jax.nn", "jax.numpy.__init__", "jax.numpy.fft", "jax.numpy.linalg",
    "jax.scipy.linalg", "jax.scipy.special",
)  # fmt: skip

HEAD = '''"""{what} Written by `make generate` from the tables of the package (`cli/stubs.py`)."""

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, overload

from eshkol.ops.dtypes import DType
from eshkol.tensors.value import Tensor
'''
LIKE = """import numpy

TensorLike: TypeAlias = Tensor | numpy.ndarray[Any, Any] | numpy.generic | builtins.complex | Sequence[Any]
"""
BUILTIN = {"bool", "int", "float", "complex", "str", "bytes", "list", "tuple", "dict", "slice", "object", "type"}
KNOWN = BUILTIN | {"Tensor", "DType", "Any", "None", "Sequence", "Callable", "Mapping", "Iterator", "TensorLike"}


def type_text(annotation: Any, given: bool) -> str:
    """A type as a stub has it; `given` says that it is an argument's, where numbers and lists stand for tensors."""
    text = str(annotation)
    if annotation is inspect.Parameter.empty or not set(re.findall(r"[A-Za-z_]\w*", text)) <= KNOWN:
        return "Any"
    if given and isinstance(annotation, Type):
        text = re.sub(r"\bTensor\b", "TensorLike", text)
    return re.sub(r"\b\w+\b", lambda m: f"builtins.{m[0]}" if m[0] in BUILTIN else m[0], text)


def _default(value: Any) -> str:
    plain = value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and abs(value) < 1e300)
    return repr(value) if plain else "..."


def _parameter(p: inspect.Parameter, kind: str | None = None, required: bool = False) -> str:
    star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")  # type: ignore[call-overload]
    text = f"{star}{p.name}: {kind or type_text(p.annotation, True)}"
    return text if p.default is p.empty or required else f"{text} = {_default(p.default)}"


def _parameters(signature: inspect.Signature, special: Mapping[str, str], required: str = "") -> list[str]:
    """The parameters as text, some of other types; from a required one on they are given by name."""
    shown: list[str] = []
    by_name = False
    for p in signature.parameters.values():
        forced = p.name == required and any(" = " in part for part in shown)
        if (p.kind is p.KEYWORD_ONLY or forced) and not by_name:
            by_name = True
            if not any(part.startswith("*") for part in shown):
                shown.append("*")
        shown.append(_parameter(p, special.get(p.name), p.name == required))
    return shown


def _definition(name: str, shown: list[str], result: str, doc: str = "", note: str = "") -> Iterator[str]:
    line = f"def {name}({', '.join(shown)}) -> {result}:{note}"
    if len(line) <= LONGEST:
        yield line
    else:
        yield f"def {name}({note}"
        yield from (f"    {parameter}," for parameter in shown)
        yield f") -> {result}:"
    if doc:
        body = inspect.cleandoc(doc).replace("\\", "\\\\").replace('"""', "'''").splitlines()
        yield f'    """{body[0]}'
        yield from (f"    {line}".rstrip() for line in body[1:])
        yield '    """'
    yield "    ..."


def function_stub(name: str, function: Any) -> Iterator[str]:
    """A function that was made of a row, or of anything with a signature; each way to call it is an overload.

    `ways` of a function are its signatures, the usual one first.
    """
    usual, *others = getattr(function, "ways", (inspect.signature(function),))
    op: Op | None = getattr(function, "row", None)
    cases = {} if op is None or not op.gives_if.keys() <= usual.parameters.keys() else op.gives_if
    result = type_text(usual.return_annotation, False)
    doc = inspect.getdoc(function) or ""
    mark = ["@overload"] if cases or others else []
    yield from _cases_stub(name, usual, cases)
    yield from mark
    known = {p: f"Literal[{not value}]" for p, (value, _) in cases.items() if isinstance(value, bool)}
    given = type_text(op.gives, False) if op is not None and cases else result
    yield from _definition(name, _parameters(usual, known), given, doc)
    for way in [*([usual] if known else []), *others]:  # a flag that is not known beforehand, too
        yield from mark
        yield from _definition(name, _parameters(way, {}), type_text(way.return_annotation, False))


def _cases_stub(name: str, signature: inspect.Signature, cases: Mapping[str, tuple[Any, str]]) -> Iterator[str]:
    """An overload for each argument that decides what is given."""
    told = "  # type: ignore[overload-overlap]"  # a word among others, which mypy cannot tell from them
    for p, (value, kind) in cases.items():
        yield "@overload"
        shown = _parameters(signature, {p: f"Literal[{value!r}]"}, p)
        yield from _definition(name, shown, type_text(kind, False), note="" if isinstance(value, bool) else told)


def method_stub(name: str, function: Any) -> Iterator[str]:
    """The same as a method: the first parameter is the tensor itself."""
    text = "\n".join(function_stub(name, function))
    text = re.sub(r"^(def \w+\((?:  #.*)?\s*)\w+: \w+(?=[,)])", r"\1self", text, flags=re.MULTILINE)
    yield from (f"    {line}" if line else line for line in text.splitlines())


def entry_stub(name: str, thing: Any, root: bool) -> Iterator[str]:
    """What a stub says of one public name; functions of rows are written down in the root's, and imported elsewhere."""
    if isinstance(thing, types.ModuleType):
        parent, _, own = thing.__name__.rpartition(".")
        yield f"from {parent} import {own} as {name}"
    elif isinstance(thing, DType):
        yield f"{name}: DType"
    elif not callable(thing):
        yield f"{name}: {type_text(type(thing).__name__, False)}"
    elif not root and thing in FUNCTIONS.values():
        yield f"from eshkol._names import {thing.__name__} as {name}"
    elif _importable(thing) and not hasattr(thing, "ways"):
        yield f"from {thing.__module__} import {thing.__name__} as {name}"
    else:
        yield from function_stub(name, thing)


def _importable(thing: Any) -> bool:
    module, own = getattr(thing, "__module__", None), getattr(thing, "__qualname__", "")
    return bool(module) and module != "eshkol" and getattr(sys.modules.get(str(module)), own, None) is thing


def module_stub(what: str, names: Mapping[str, Any], root: bool = False) -> str:
    """The stub of a module with these names."""
    imports: list[str] = []
    rest: list[str] = []
    for name in sorted(names):
        lines = list(entry_stub(name, names[name], root))
        (imports if lines[0].startswith("from ") else rest).extend(lines)
    if any("TensorLike" in line for line in rest):
        imports.append("from eshkol.tensors.methods import TensorLike")
    imports += ["", "__all__ = [", *(f'    "{name}",' for name in sorted(names)), "]", ""]
    return "\n".join([HEAD.format(what=what), *imports, *rest]) + "\n"


def _written(cls: type) -> set[str]:
    """The names that the source of a class defines, which a type checker sees there."""
    if not cls.__module__.startswith("eshkol"):
        return set()
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(tree, ast.ClassDef)
    found = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
    return found | {target.id for node in assigned for target in node.targets if isinstance(target, ast.Name)}


def methods_stub() -> str:
    """The class under `Tensor` with all that was put on it after it was written, and its operators."""
    lines = [HEAD.format(what="The methods of `Tensor` that follow from the op table."), LIKE, "class Methods:"]
    for name, operator in vars(Operators).items():
        if name.startswith("__") and inspect.isfunction(operator):
            two = "self, other: TensorLike" if "other" in inspect.signature(operator).parameters else "self"
            lines.append(f"    def {name}({two}) -> Tensor: ...")
    written = {name for cls in Tensor.__mro__ if cls is not Operators for name in _written(cls)}
    for name, thing in sorted(vars(Tensor).items()):
        if name in written or (name.startswith("__") and not name.startswith("__i")):
            continue
        if isinstance(thing, property):
            lines += ["    @property", f"    def {name}(self) -> Any: ..."]
        elif inspect.isfunction(thing):
            if name.startswith("__i"):  # in place; an operand as of the operator
                lines.append(f"    def {name}(self, other: TensorLike) -> Tensor: ...")
            else:
                lines += method_stub(name, thing)
    return "\n".join(lines) + "\n"


def root_names() -> dict[str, Any]:
    """Everything that `ek.` offers."""
    return {name: getattr(eshkol, name) for name in dir(eshkol) if not name.startswith("_")}


def _table_of(module: str) -> dict[str, Any]:
    found = import_module(f"eshkol.{module.removesuffix('.__init__')}")
    return {name: getattr(found, name) for name in found.__all__}


def stubs() -> dict[str, str]:
    """The text of every stub, by its path in the package."""
    made = {
        "_names.pyi": module_stub("What `import eshkol as ek` offers.", root_names(), root=True),
        "tensors/methods.pyi": methods_stub(),
    }
    for module in MODULES:
        made[f"{module.replace('.', '/')}.pyi"] = module_stub(f"The names of eshkol.{module}.", _table_of(module))
    return made


if __name__ == "__main__":
    for path, text in stubs().items():
        (Path(sys.argv[1]) / path).write_text(text, encoding="utf-8")
