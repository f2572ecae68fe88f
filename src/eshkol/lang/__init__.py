"""The front of the language: text is read into syntax objects, expanded hygienically, and leaves as core forms.

For Python programs `ek.lang` is the language itself: `ek.lang.gradient(f, x)` (bindings/language.py). What is no module
here is asked for at the root of the package, which stands above both.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from types import ModuleType

TYPE_CHECKING = False  # as in typing
if TYPE_CHECKING:
    from typing import Any


def _language() -> Any:
    return sys.modules[__name__.partition(".")[0]]._language


if not TYPE_CHECKING:  # there are modules here, and to the checker nothing else

    def __getattr__(name: str) -> Any:
        if name.startswith("__") or find_spec(f"{__name__}.{name}") is not None:  # which is imported next
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return globals().setdefault(name, _language().attribute(name))

    def __dir__() -> list[str]:
        return sorted({*globals(), *_language().attributes()})


class _Package(ModuleType):
    def __getitem__(self, name: str) -> Any:
        return _language().item(name)


sys.modules[__name__].__class__ = _Package
