"""Modules that hold others, and parameters in lists and dicts: what `parameters()` finds, a plain list hides."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from eshkol.errors import IndexOutOfRange, TensorError
from eshkol.nn.module import Module, Parameter
from eshkol.nn.recipes import PARAMETERS, PARTS
from eshkol.support.whole import is_whole
from eshkol.tensors import api as ek
from eshkol.tensors.value import Tensor


def _module(who: str, given: Any) -> Module:
    if not isinstance(given, Module):
        what = f"the class {given.__name__}" if isinstance(given, type) else f"a {type(given).__name__}"
        hint = "make one of it: nn.ReLU()" if isinstance(given, type) else "for a function, use nn.Lambda(function)"
        raise TensorError(f"{who} holds modules, not {what}", span=ek.here(), hint=hint)
    return given


class _Numbered(Module):
    """Modules under the names "0", "1", …, as a list."""

    _described_by = PARTS

    def _at(self, index: int) -> str:
        if not is_whole(index):
            raise TensorError(f"{type(self).__name__} is indexed by integers and slices, not {index!r}", span=ek.here())
        names = list(self._modules)
        if not -len(names) <= index < len(names):
            raise IndexOutOfRange(f"{type(self).__name__} has {len(names)} modules, and no {index}", span=ek.here())
        return names[index]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._with(list(self._modules.items())[index])
        return self._modules[self._at(index)]

    def _with(self, chosen: list[tuple[str, Any]]) -> Any:
        """One like it with some of its modules."""
        return ModuleList(module for _, module in chosen)

    def __setitem__(self, index: int, module: Module) -> None:
        self._modules[self._at(index)] = _module(type(self).__name__, module)
        self._changed()

    def __delitem__(self, index: Any) -> None:
        names = list(self._modules)[index] if isinstance(index, slice) else [self._at(index)]
        self._renumber([(name, module) for name, module in self._modules.items() if name not in names])

    def _renumber(self, kept: list[tuple[str, Any]]) -> None:
        self._modules.clear()
        for k, (name, module) in enumerate(kept):
            self._modules[str(k) if name.isdigit() else name] = module
        self._changed()

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def append(self, module: Module) -> Self:
        """Add a module at the end; gives itself."""
        self.add_module(str(len(self)), _module(type(self).__name__, module))
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add modules at the end; gives itself."""
        for module in modules:
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Put a module before the one at an index; gives itself."""
        kept: list[tuple[str, Any]] = list(self._modules.items())
        kept.insert(index, ("0", _module(type(self).__name__, module)))
        self._renumber(kept)
        return self

    def pop(self, index: int) -> Any:
        """Take a module out, and give it."""
        found = self[index]
        del self[index]
        return found


class Sequential(_Numbered):
    """Modules one after the other: each is given what the one before it gives.

    >>> nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
    >>> nn.Sequential(OrderedDict(hidden=nn.Linear(2, 8), out=nn.Linear(8, 1)))
    """

    def __init__(self, *modules: Any) -> None:
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            for name, module in modules[0].items():
                self.add_module(name, _module("Sequential", module))
        else:
            for module in modules[0] if len(modules) == 1 and isinstance(modules[0], list | tuple) else modules:
                self.append(module)

    def _with(self, chosen: list[tuple[str, Any]]) -> Sequential:
        numbered = all(name.isdigit() for name, _ in chosen)
        return Sequential(*(module for _, module in chosen)) if numbered else Sequential(OrderedDict(chosen))

    def forward(self, *args: Any, **given: Any) -> Any:
        modules = list(self._modules.values())
        if not modules:
            (result,) = args
            return result
        result = modules[0](*args, **given) if modules[0] is not None else args[0]
        for module in modules[1:]:
            if module is not None:
                result = module(result)
        return result


class ModuleList(_Numbered):
    """A list of modules, whose parameters are found; it computes nothing itself."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__()
        self.extend(modules)


class ModuleDict(Module):
    """Modules by name, whose parameters are found; it computes nothing itself."""

    _described_by = PARTS

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] = ()) -> None:
        super().__init__()
        self.update(modules)

    def __getitem__(self, name: str) -> Any:
        if name not in self._modules:
            raise KeyError(name)
        return self._modules[name]

    def __setitem__(self, name: str, module: Module) -> None:
        self.add_module(name, _module("ModuleDict", module))

    def __delitem__(self, name: str) -> None:
        del self._modules[name]
        self._changed()

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, name: object) -> bool:
        return name in self._modules

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._modules.keys()

    def values(self) -> Iterable[Any]:
        """The modules."""
        return self._modules.values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """The names with their modules."""
        return self._modules.items()

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add modules, or put them in place of those of the same name."""
        for name, module in modules.items() if isinstance(modules, Mapping) else modules:
            self[name] = module

    def pop(self, name: str) -> Any:
        """Take a module out, and give it."""
        found = self[name]
        del self[name]
        return found


def _parameter(value: Any) -> Tensor:
    return value if isinstance(value, Tensor) and value.is_leaf and value.requires_grad else Parameter(value)


class ParameterList(Module):
    """Parameters in a list; tensors that are none become parameters."""

    _described_by = PARAMETERS

    def __init__(self, values: Iterable[Any] = ()) -> None:
        super().__init__()
        self.extend(values)

    def _at(self, index: int) -> str:
        count = len(self._parameters)
        if not -count <= index < count:
            raise IndexOutOfRange(f"ParameterList has {count} parameters, and no {index}", span=ek.here())
        return str(index % count)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return ParameterList(list(self)[index])
        return self._parameters[self._at(index)]

    def __setitem__(self, index: int, value: Any) -> None:
        self._parameters[self._at(index)] = _parameter(value)
        self._changed()

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parameters.values())

    def append(self, value: Any) -> Self:
        """Add a parameter at the end; gives itself."""
        self.register_parameter(str(len(self)), _parameter(value))
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Add parameters at the end; gives itself."""
        for value in values:
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return ", ".join(f"{p.dtype}{list(p.shape)}" for p in self)


class ParameterDict(Module):
    """Parameters by name; tensors that are none become parameters."""

    _described_by = PARAMETERS

    def __init__(self, values: Mapping[str, Any] | Iterable[tuple[str, Any]] = ()) -> None:
        super().__init__()
        self.update(values)

    def __getitem__(self, name: str) -> Any:
        if name not in self._parameters:
            raise KeyError(name)
        return self._parameters[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self.register_parameter(name, _parameter(value))

    def __delitem__(self, name: str) -> None:
        del self._parameters[name]
        self._changed()

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __contains__(self, name: object) -> bool:
        return name in self._parameters

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._parameters.keys()

    def values(self) -> Iterable[Any]:
        """The parameters."""
        return self._parameters.values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """The names with their parameters."""
        return self._parameters.items()

    def update(self, values: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Add parameters, or put them in place of those of the same name."""
        for name, value in values.items() if isinstance(values, Mapping) else values:
            self[name] = value

    def extra_repr(self) -> str:
        return ", ".join(f"{name}: {p.dtype}{list(p.shape)}" for name, p in self.items())


class Lambda(Module):
    """A function of tensors as a module, so that it can stand among others."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        if not callable(function) or isinstance(function, Module):
            raise TensorError(f"Lambda takes a function, not a {type(function).__name__}", span=ek.here())
        self.function = function

    def forward(self, *args: Any, **given: Any) -> Any:
        return self.function(*args, **given)

    def extra_repr(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)
