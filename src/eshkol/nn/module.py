"""`Module`: a function with parameters, made of others like it.

A parameter is a tensor that requires grad, assigned to an attribute; a buffer is a tensor that belongs to the model
and is not trained (`register_buffer`); a module that is assigned to an attribute is a part. The tensors are handles:
training and loading give them other values in place, so whoever holds one sees them.

A model is a pure function of its state too: `functional_call(model, state, x)` (functional.py).
"""

from __future__ import annotations

import difflib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, Self

import numpy as np

from eshkol.errors import DTypeError, ShapeError, TensorError
from eshkol.nn.functional import CompiledModel
from eshkol.nn.hooks import Hook, HookHandle, watched
from eshkol.nn.making import Remembering, claim, drawn
from eshkol.nn.module_like import State
from eshkol.nn.recipes import Making
from eshkol.nn.summary import Summary, summarized
from eshkol.tensors import api as ek
from eshkol.tensors.computing import realize
from eshkol.tensors.devices import DTYPES
from eshkol.tensors.drawing import tracing
from eshkol.tensors.holding import bare, put
from eshkol.tensors.tape import Waiting
from eshkol.tensors.value import Tensor


class _Parameters(type):
    """Of what `Parameter` is: called, it makes a tensor, and `isinstance` asks whether one is such."""

    def __call__(cls, data: Any, requires_grad: bool = True) -> Tensor:
        made = _own(data)
        claim(made.nbytes)
        if not drawn():
            made = ek.zeros(made.shape, dtype=made.dtype)
        return made.detach().clone().realize().requires_grad_(requires_grad)

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, Tensor) and value.requires_grad and value.is_leaf


class Parameter(Tensor, metaclass=_Parameters):
    """A tensor that a module trains: a leaf of its own that requires grad.

    `Parameter(data, requires_grad=True)` gives such a tensor; `isinstance(x, Parameter)` holds for every such tensor.
    """

    __slots__ = ()

    def __init__(self, data: Any, requires_grad: bool = True) -> None:
        """What it is called with; the class of classes makes a plain tensor of it."""
        raise NotImplementedError


def Buffer(data: Any) -> Tensor:
    """A tensor for `register_buffer`, computed."""
    made = _own(data)
    claim(made.nbytes)
    return made.realize()


@dataclass(frozen=True)
class Loaded:
    """What `load_state_dict(strict=False)` found: names the state lacks, and names the model does not know."""

    missing: tuple[str, ...]
    unexpected: tuple[str, ...]

    @property
    def missing_keys(self) -> list[str]:
        """The names that the state lacks, as PyTorch calls them."""
        return [*self.missing]

    @property
    def unexpected_keys(self) -> list[str]:
        """The names that the model does not know, as PyTorch calls them."""
        return [*self.unexpected]

    def __str__(self) -> str:
        return repr(self) if self.missing or self.unexpected else "<All keys matched successfully>"


class Module(Remembering):
    """Base of every layer and model: assign parameters and parts in `__init__`, compute in `forward`.

    >>> class Net(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.hidden, self.out = nn.Linear(2, 8), nn.Linear(8, 1)
    ...     def forward(self, x):
    ...         return self.out(ek.tanh(self.hidden(x)))
    """

    changes: ClassVar[int] = 0  # of any module's structure or hooks: who keeps lists or traces looks at it
    training: bool
    _parameters: dict[str, Tensor | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]
    _temporary: set[str]  # buffers that are not part of the state
    _version: int  # of its own structure and plain attributes
    _making: Making | None  # of layers of this package: what they were made with

    def __init__(self) -> None:
        claim(0)
        put_attribute = object.__setattr__
        for name in ("_parameters", "_buffers", "_modules"):
            put_attribute(self, name, OrderedDict())
        for name in ("_before", "_after", "_backward"):
            put_attribute(self, name, {})
        put_attribute(self, "_temporary", set())
        put_attribute(self, "_version", 0)
        put_attribute(self, "training", True)

    # --- attributes ---------------------------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if "_parameters" not in own:
            if isinstance(value, Module | Tensor):
                raise TensorError(
                    f"{type(self).__name__} assigns '{name}' before it is a module", span=ek.here(),
                    hint="say super().__init__() first in __init__",
                )  # fmt: skip
            object.__setattr__(self, name, value)
        elif isinstance(value, Module):
            self.add_module(name, value)
        elif isinstance(value, Tensor):
            self._assign(name, value)
        elif value is None and (place := self._place(name)) is not None:
            self._changed()
            place[name] = None
        else:
            _refuse_hidden(self, name, value)
            self._set_plain(name, int(value) if isinstance(value, np.integer) else value)  # files keep Python's numbers

    def _set_plain(self, name: str, value: Any) -> None:
        """Set an attribute that is neither parameter, buffer nor part."""
        self._forget(name)
        own = self.__dict__
        if name != "training" and not (name in own and _same(own[name], value)) and not tracing():
            self._changed()
        object.__setattr__(self, name, value)

    def _changed(self) -> None:
        """Note that it computes otherwise now: what was traced of it is traced anew."""
        Module.changes += 1
        object.__setattr__(self, "_version", self._version + 1)

    def _traced_as(self) -> tuple[int, ...]:
        """What a trace of it belongs to, besides its mode: its version and its hooks. `changes` tells of both."""
        return (self._version, *self._before, *self._after, *self._backward)

    def _assign(self, name: str, value: Tensor) -> None:
        if name in self._buffers:
            held = self._buffers[name]
            if held is None or held.shape != value.shape or held.dtype is not value.dtype:
                self._changed()
                self._buffers[name] = value
            elif held is not value:
                if held in Waiting:  # no one asked for it: its history would grow from call to call
                    realize(*Waiting.taken())
                held._become(value.detach()._node)  # whoever holds the buffer sees its new value
                Waiting.add(held)
        elif value.requires_grad and value.is_leaf:
            self.register_parameter(name, value)
        elif name in self._parameters:
            raise TensorError(
                f"{type(self).__name__}.{name} is a parameter, and was assigned a tensor that is none", span=ek.here(),
                hint="assign nn.Parameter(x), or give the parameter another value under ek.no_grad()",
            )  # fmt: skip
        else:
            self._set_plain(name, value)

    def _place(self, name: str) -> dict[str, Any] | None:
        """Where a registered name stands."""
        places: tuple[dict[str, Any], ...] = (self._parameters, self._buffers, self._modules)
        return next((place for place in places if name in place), None)

    def _forget(self, name: str) -> None:
        while (place := self._place(name)) is not None:
            self._changed()
            del place[name]

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for place in ("_parameters", "_buffers", "_modules"):
            if place in own and name in own[place]:
                return own[place][name]
        known = [n for place in ("_parameters", "_buffers", "_modules") for n in own.get(place, ())]
        near = difflib.get_close_matches(name, known, 1)
        said = f"; did you mean '{near[0]}'?" if near else ""
        if "_parameters" not in own and not name.startswith("__"):
            said = "; its __init__ must say super().__init__() first"
        raise AttributeError(f"{type(self).__name__} has no attribute '{name}'{said}")

    def __delattr__(self, name: str) -> None:
        if self._place(name) is not None:
            self._forget(name)
        else:
            object.__delattr__(self, name)
            self._changed()

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self._parameters, *self._buffers, *self._modules})

    def register_parameter(self, name: str, value: Tensor | None) -> None:
        """Make a tensor a parameter of this module, under a name; also one that is frozen, or None for none."""
        self._new_name(name)
        if value is not None and not value.dtype.differentiable:
            raise DTypeError(f"parameter '{name}' is {value.dtype}: only floats are trained", span=ek.here())
        self._parameters[name] = value

    def register_buffer(self, name: str, value: Tensor | None, persistent: bool = True) -> None:
        """Make a tensor part of the model that is not trained; without `persistent` the state does not hold it."""
        self._new_name(name)
        self._buffers[name] = value
        if not persistent:
            self._temporary.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Make a module a part of this one, under a name."""
        if module is self:
            raise TensorError(f"{type(self).__name__} cannot be a part of itself", span=ek.here())
        self._new_name(name)
        self._modules[name] = module

    def _new_name(self, name: str) -> None:
        if "_parameters" not in self.__dict__:
            raise TensorError(f"'{name}' is registered before the module is one", hint="say super().__init__() first")
        if not isinstance(name, str) or not name or "." in name:
            raise TensorError(f"a name in a module is a string without dots, not {name!r}", span=ek.here())
        if hasattr(type(self), name):
            raise TensorError(f"'{name}' would hide {type(self).__name__}.{name}", span=ek.here(), hint="rename it")
        self._forget(name)
        self._changed()
        self.__dict__.pop(name, None)

    # --- what it is made of -------------------------------------------------------------------------------------------

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Its parts, with their names."""
        return ((name, module) for name, module in self._modules.items() if module is not None)

    def children(self) -> Iterator[Module]:
        """Its parts."""
        return (module for _, module in self.named_children())

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """Itself and all parts of parts, each once, with their names."""
        return self._named_modules(prefix, set())

    def _named_modules(self, prefix: str, seen: set[int]) -> Iterator[tuple[str, Module]]:
        if id(self) in seen:
            return
        seen.add(id(self))
        yield prefix, self
        for name, module in self.named_children():
            yield from module._named_modules(f"{prefix}.{name}" if prefix else name, seen)

    def modules(self) -> Iterator[Module]:
        """Itself and all parts of parts, each once."""
        return (module for _, module in self.named_modules())

    def _named(self, kind: str, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
        seen: set[int] = set()
        for path, module in self.named_modules(prefix):
            for name, tensor in getattr(module, kind).items():
                if tensor is not None and id(tensor) not in seen:
                    seen.add(id(tensor))
                    yield f"{path}.{name}" if path else name, tensor

    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
        """All parameters, each once, with their names (`hidden.weight`)."""
        return self._named("_parameters", prefix)

    def parameters(self) -> Iterator[Tensor]:
        """All parameters, each once."""
        return (tensor for _, tensor in self.named_parameters())

    def named_buffers(self, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
        """All buffers, each once, with their names."""
        return self._named("_buffers", prefix)

    def buffers(self) -> Iterator[Tensor]:
        """All buffers, each once."""
        return (tensor for _, tensor in self.named_buffers())

    def get_submodule(self, path: str) -> Module:
        """The part of that name (`encoder.layers.0`)."""
        found: Module = self
        for name in path.split(".") if path else ():
            part = found._modules.get(name)
            if part is None:
                raise TensorError(f"{type(self).__name__} has no part '{path}'", span=ek.here())
            found = part
        return found

    # --- state --------------------------------------------------------------------------------------------------------

    def get_parameter(self, path: str) -> Tensor:
        """A parameter by its path, as "encoder.0.weight"."""
        return dict(self.named_parameters())[path]

    def get_buffer(self, path: str) -> Tensor:
        """A buffer by its path."""
        return dict(self.named_buffers())[path]

    def _state(self) -> Iterator[tuple[str, Tensor]]:
        """Every name of the state with its tensor; one that is shared has several names."""
        for path, module in _every_path(self):
            kept = ((n, t) for n, t in module._buffers.items() if n not in module._temporary)
            for name, tensor in chain(module._parameters.items(), kept):
                if tensor is not None:
                    yield f"{path}.{name}" if path else name, tensor

    def state_dict(self) -> State:
        """The values of all parameters and buffers, by name; later training does not change them."""
        return {name: bare(tensor) for name, tensor in self._state()}

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> Loaded:
        """Give parameters and buffers the values of a state; all of them or, on an error, none."""
        own = dict(self._state())
        missing = tuple(name for name in own if name not in state)
        unexpected = tuple(name for name in state if name not in own)
        if strict and (missing or unexpected):
            said = [
                f"{what}: {_some(names)}" for what, names in (("missing", missing), ("unknown", unexpected)) if names
            ]
            raise TensorError(
                f"the state does not fit {type(self).__name__}; {'; '.join(said)}", span=ek.here(),
                hint="load_state_dict(state, strict=False) takes what fits by name",
            )  # fmt: skip
        values = {name: _own(state[name]) for name in own if name in state}
        wrong = [
            f"{name} is {own[name].dtype}{list(own[name].shape)}, the state has {value.dtype}{list(value.shape)}"
            for name, value in values.items()
            if value.shape != own[name].shape or value.dtype.is_complex != own[name].dtype.is_complex
        ]
        if wrong:
            raise ShapeError(
                f"the state does not fit {type(self).__name__}: {'; '.join(wrong[:5])}", span=ek.here(),
                hint="make the model with the sizes that the state was made with, or leave these names out",
            )  # fmt: skip
        for name, value in values.items():
            put(own[name], ek.cast(value, own[name].dtype).realize(), name)
        return Loaded(missing, unexpected)

    # --- modes --------------------------------------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Self:
        """Set it, and all its parts, to training (dropout draws, batch norm counts) or not; gives itself."""
        if not isinstance(mode, bool):
            raise TensorError(f"train(mode) takes True or False, not {mode!r}", span=ek.here())
        for module in self.modules():
            object.__setattr__(module, "training", mode)
        return self

    def eval(self) -> Self:
        """Set it, and all its parts, to evaluation; gives itself."""
        return self.train(False)

    def requires_grad_(self, wanted: bool = True) -> Self:
        """Train its parameters, or leave them as they are; gives itself."""
        for tensor in self.parameters():
            tensor.requires_grad_(wanted)
        return self

    def freeze(self) -> Self:
        """Leave its parameters as they are from now on; gives itself."""
        return self.requires_grad_(False)

    def unfreeze(self) -> Self:
        """Train its parameters again; gives itself."""
        return self.requires_grad_(True)

    def apply(self, function: Callable[[Module], object]) -> Self:
        """Call a function with each part and then with itself; gives itself."""
        for module in reversed(list(self.modules())):
            function(module)
        return self

    def to(self, device: Any = None, dtype: Any = None) -> Self:
        """Move parameters and buffers to a device, convert those that are floats to a dtype, in place; gives itself.

        >>> model.to("discrete")
        >>> model.to(ek.bfloat16)
        """
        for tensor in chain(self.parameters(), self.buffers()):
            value = bare(tensor)
            if tensor.dtype.is_float:
                value = value.to(device, dtype)
            elif isinstance(device, str) and device not in DTYPES:
                value = value.to(device)
            if value._node is not bare(tensor)._node:
                wanted = tensor.requires_grad
                tensor._become(value.realize()._node)
                tensor.grad = None
                tensor.requires_grad_(wanted)
        return self

    def float(self) -> Self:
        """Floats as float32, in place; gives itself."""
        return self.to(ek.float32)

    def double(self) -> Self:
        """Floats as float64, in place; gives itself."""
        return self.to(ek.float64)

    def half(self) -> Self:
        """Floats as float16, in place; gives itself."""
        return self.to(ek.float16)

    def bfloat16(self) -> Self:
        """Floats as bfloat16, in place; gives itself."""
        return self.to(ek.bfloat16)

    def cpu(self) -> Self:
        """Moved to the host's memory; gives itself."""
        return self.to("cpu")

    def cuda(self, device: Any = None) -> Self:
        """Moved to a graphics card of NVIDIA's, if there is one; gives itself."""
        return self.to("cuda")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of its parameters; without `set_to_none` they become zeros."""
        for tensor in self.parameters():
            if tensor.grad is not None:
                tensor.grad = None if set_to_none else ek.zeros(tensor.shape, dtype=tensor.dtype)

    # --- calls --------------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **given: Any) -> Any:
        forward = getattr(type(self), "forward", None) or self.__dict__.get("forward")
        if forward is None:
            raise TensorError(
                f"{type(self).__name__} has no forward(), so it computes nothing", span=ek.here(),
                hint="define forward(self, x) in the class",
            )  # fmt: skip
        if "_before" not in self.__dict__:
            raise TensorError(f"{type(self).__name__}.__init__ did not call super().__init__()", span=ek.here())
        for hook in tuple(self._before.values()):
            changed = hook(self, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        result = self.forward(*args, **given)
        for hook in tuple(self._after.values()):
            changed = hook(self, args, result)
            if changed is not None:
                result = changed
        return watched(self, result, tuple(self._backward.values())) if self._backward else result

    def register_forward_pre_hook(self, hook: Hook) -> HookHandle:
        """Call `hook(module, args)` before each call; what it gives, unless None, are the arguments instead."""
        return HookHandle(self._before, hook, _note_change)

    def register_forward_hook(self, hook: Hook) -> HookHandle:
        """Call `hook(module, args, result)` after each call; what it gives, unless None, is the result instead."""
        return HookHandle(self._after, hook, _note_change)

    def register_backward_hook(self, hook: Hook) -> HookHandle:
        """Call `hook(module, gradient)` with the gradient of what the module gave, when it is known.

        It has the structure of the result; what the hook gives, unless None, is the gradient instead. Inside `ek.grad`
        and `ek.jit` its values are not known: compute with tensor operations.
        """
        return HookHandle(self._backward, hook, _note_change)

    def register_full_backward_hook(self, hook: Hook) -> HookHandle:
        """Call `hook(module, grad_input, grad_output)` as PyTorch does; gradients of inputs are not told: None."""
        return self.register_backward_hook(lambda module, gradient: hook(module, None, gradient))

    def summary(self, *inputs: Any, dtype: Any = None) -> Summary:
        """A table of its layers with output shapes, parameters, FLOPs and memory; nothing is computed.

        Each input is a whole shape, the batch too, as (1, 3, 224, 224), or a tensor; `dtype` is that of shapes.

        >>> print(model.summary((32, 784)))
        """
        return summarized(self, inputs, dtype)

    def __jit__(self, **how: Any) -> Any:
        """What `ek.jit(model)` gives."""
        return CompiledModel(self, **how)

    def __jit_state__(self) -> Any:
        """What a function under `ek.jit` that captures it depends on."""
        kinds = tuple((module.training, *module._traced_as()) for module in self.modules())
        return kinds, list(self.parameters()), list(self.buffers())

    # --- text ---------------------------------------------------------------------------------------------------------

    def scheme_text(self) -> str:
        """What Scheme's display shows of it."""
        return repr(self)

    def extra_repr(self) -> str:
        """What stands in parentheses after its name."""
        return ""

    def __repr__(self) -> str:
        head = f"{type(self).__name__}({self.extra_repr()}"
        parts = [f"  ({name}): " + repr(module).replace("\n", "\n  ") for name, module in self.named_children()]
        return head + ("\n" + "\n".join(parts) + "\n)" if parts else ")")


def _note_change() -> None:
    Module.changes += 1


def _same(a: Any, b: Any) -> bool:
    """Whether an attribute that is set again stays what it was."""
    return a is b or (type(a) is type(b) and isinstance(a, bool | int | float | str) and a == b)


def _own(data: Any) -> Tensor:
    """A tensor that shares no memory with an array that its owner may write to."""
    made: Tensor = data if isinstance(data, Tensor) else ek.tensor(data)
    return made


def _every_path(module: Module, path: str = "") -> Iterator[tuple[str, Module]]:
    """All parts of parts under every name they have."""
    yield path, module
    for name, part in module.named_children():
        yield from _every_path(part, f"{path}.{name}" if path else name)


def _refuse_hidden(module: Module, name: str, value: Any) -> None:
    """Modules in plain lists are not found by `parameters()`: they would silently not be trained."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    for x in inside:
        if isinstance(x, Module) or (isinstance(x, Tensor) and x.requires_grad and x.is_leaf):
            raise TensorError(
                f"{type(module).__name__}.{name} is a {type(value).__name__} that holds parameters, and they would not "
                "be trained", span=ek.here(),
                hint="use nn.ModuleList, nn.ModuleDict, nn.ParameterList or nn.ParameterDict",
            )  # fmt: skip


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
