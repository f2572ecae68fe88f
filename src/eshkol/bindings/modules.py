"""Files of Eshkol as modules of Python: `ek.load("model.esk")`.

    m = ek.load("model.esk")
    m.square_error(m.forward(weights, x), y, axis=0)    # (square-error (forward weights x) y :axis 0)
    m["square-error"]                                   # by its own name

The attributes of a module are the top-level definitions of its file: of a program all of them, or what it `provide`s;
of a file that is a library, what that exports. They are spelled as `bindings/spelling.py` says. A variable that the
file changes is seen as it is now. Each load gives a module with definitions of its own; the files that it imports or
requires are loaded once for the session, as in Scheme.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from eshkol.bindings.guest import in_session, to_python
from eshkol.bindings.spelling import Spelling
from eshkol.lang.files import FileSource, read_source, shown
from eshkol.lang.meanings import CellBinding
from eshkol.lang.scopes import Binding
from eshkol.session import Session

if TYPE_CHECKING:
    from eshkol.lang.libraries import SourceModule
    from eshkol.lang.program import Interaction

STATE = "__eshkol__"  # the attribute that a module keeps its Scheme side in


@dataclass
class _Inside:
    """What stands under a module: the file as Scheme has it."""

    file: Path
    module: SourceModule
    bindings: dict[str, Binding]
    spelling: Spelling
    prompt: Interaction | None = None  # where texts are evaluated inside it
    kept: set[str] = field(default_factory=set)  # attributes that were found, and stay as they are


class SchemeModule(ModuleType):
    """A file of Eshkol that has run."""

    def __getattr__(self, name: str) -> Any:  # what is not in the module's own dictionary
        if name.startswith("__") and name.endswith("__"):
            if name == "__all__" and STATE in vars(self):
                return self._inside.spelling.attributes()
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        inside = self._inside
        exact = inside.spelling.find(name, _title(inside))
        binding = inside.bindings[exact]
        value = in_session(lambda session: value_of(session, exact, binding))
        if callable(value) and isinstance(binding, CellBinding) and binding.cell.sealed and not binding.cell.assigned:
            vars(self)[name] = value  # found at once from now on
            inside.kept.add(name)
        return value

    def __getitem__(self, name: str) -> Any:
        inside = self._inside
        binding = inside.bindings.get(name)
        if binding is None:
            raise inside.spelling.missing(name, _title(inside))
        return in_session(lambda session: value_of(session, name, binding))

    def __setattr__(self, name: str, value: Any) -> None:
        inside = vars(self).get(STATE)
        if inside is not None and (name in inside.bindings or name in inside.spelling.attributes()):
            raise AttributeError(
                f"{_title(inside)} defines {name!r}, and would not hear of another value; let it define a "
                "procedure that changes it"
            )
        super().__setattr__(name, value)

    def __contains__(self, name: str) -> bool:
        return name in self._inside.bindings

    def __iter__(self) -> Iterator[str]:
        """The names of its definitions, as Scheme has them."""
        return iter(sorted(self._inside.bindings))

    def __dir__(self) -> list[str]:
        inside = vars(self).get(STATE)
        return sorted({*vars(self), *(() if inside is None else inside.spelling.attributes())} - {STATE})

    def __repr__(self) -> str:
        inside = vars(self).get(STATE)
        return f"<eshkol module {self.__name__!r}{'' if inside is None else f' from {str(inside.file)!r}'}>"

    @property
    def _inside(self) -> _Inside:
        found = vars(self).get(STATE)
        if not isinstance(found, _Inside):
            raise AttributeError(f"the file of module {self.__name__!r} has not run yet")
        return found

    # ---- on Scheme's thread ----------------------------------------------------------------------------------------

    def run_file(self, session: Session, path: Path) -> None:
        """Run a file; what it defines are the attributes from now on."""
        source = read_source(path)
        module = session.load(source)
        before = vars(self).get(STATE)
        for name in before.kept if isinstance(before, _Inside) else ():
            vars(self).pop(name, None)
        bindings = dict(module.exports)
        vars(self)[STATE] = _Inside(source.path, module, bindings, Spelling(_variables(bindings)))
        self.__doc__, self.__file__ = _first_comment(source), str(source.path)

    def prompt(self, session: Session) -> Interaction:
        """Where texts are evaluated that see what stands in the file."""
        inside = self._inside
        if inside.prompt is None:
            inside.prompt = session.inside(inside.module, f"<in {_title(inside)}>")
        return inside.prompt

    def has_changed(self) -> None:
        """After a text was evaluated inside: what it defined is there, too."""
        inside = self._inside
        assert inside.prompt is not None
        namespace = inside.prompt.namespace
        for name in namespace.defined:
            binding = namespace.lookup(name)
            if binding is not None and inside.bindings.get(name) is not binding:
                inside.bindings[name] = binding
        inside.spelling = Spelling(_variables(inside.bindings))
        for name in inside.kept:
            vars(self).pop(name, None)
        inside.kept.clear()


def load(path: str | PathLike[str], name: str | None = None) -> SchemeModule:
    """Run a file of Eshkol; the module that its definitions are attributes of.

    The module is new each time, and has definitions of its own; it is called `name`, or as the file is. An error in the
    file comes out as an EshkolError that shows the line.
    """
    __tracebackhide__ = True  # IPython and pytest show the caller's line, not this
    file = Path(fspath(path))
    module = SchemeModule(name or file.stem)
    run_in(module, file)
    return module


def run_in(module: ModuleType, path: str | PathLike[str]) -> None:
    """Run a file as the contents of a module: once more, where it has run before."""
    __tracebackhide__ = True
    assert isinstance(module, SchemeModule)
    in_session(lambda session: module.run_file(session, Path(path)))


def value_of(session: Session, name: str, binding: Binding) -> Any:
    """What a name means, in Python; on Scheme's thread."""
    if not isinstance(binding, CellBinding):
        raise AttributeError(f"{name} is a form, which has no value; use it in a text: ek.eval('({name} ...)')")
    cell = binding.cell
    session.world.ensure_cell(cell)
    return to_python(session, session.engine.cell(cell.library, cell.name))


def _variables(bindings: dict[str, Binding]) -> list[str]:
    return [name for name, binding in bindings.items() if isinstance(binding, CellBinding)]


def _title(inside: _Inside) -> str:
    return shown(inside.file)


def _first_comment(source: FileSource) -> str | None:
    """The lines of comment that a file begins with."""
    lines = []
    for line in source.text.removeprefix("#!").splitlines():
        if not line.startswith(";"):
            break
        lines.append(line.lstrip(";").strip())
    return "\n".join(lines) or None
