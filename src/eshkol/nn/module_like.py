"""`ModuleLike`: a module as the modules of this package see it that `Module` itself stands on.

Pure calls, summaries and recipes are told of models without knowing their class: module.py imports them, and they
import this. Whatever is written here, `Module` has; mypy compares the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Protocol

from eshkol.nn.hooks import Hook, HookHandle
from eshkol.tensors.value import Tensor

State = dict[str, Tensor]
"""Values of parameters and buffers, by name."""


class ModuleLike(Protocol):
    """A function with parameters, buffers and parts."""

    training: bool
    _described_by: ClassVar[str]
    _parameters: dict[str, Tensor | None]
    _buffers: dict[str, Tensor | None]
    _temporary: set[str]
    _version: int
    _making: Any
    _before: dict[int, Hook]
    _after: dict[int, Hook]
    _backward: dict[int, Hook]

    @property
    def _modules(self) -> Mapping[str, ModuleLike | None]: ...

    def __call__(self, *args: Any, **given: Any) -> Any: ...

    def children(self) -> Iterator[ModuleLike]: ...

    def modules(self) -> Iterator[ModuleLike]: ...

    def named_modules(self) -> Iterator[tuple[str, ModuleLike]]: ...

    def parameters(self) -> Iterator[Tensor]: ...

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]: ...

    def buffers(self) -> Iterator[Tensor]: ...

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]: ...

    def register_forward_hook(self, hook: Hook) -> HookHandle: ...

    def eval(self) -> object: ...

    def _named(self, kind: str) -> Iterator[tuple[str, Tensor]]: ...

    def _state(self) -> Iterator[tuple[str, Tensor]]: ...

    def _traced_as(self) -> tuple[int, ...]: ...
