"""What this implementation can do, in the words of `cond-expand` and `(features)`.

One list for both: `cond-expand` asks it while a program is expanded, and the core form `%features` puts it into
compiled code, where the library's `features` finds it. It depends on the machine, so it is part of every key under
which expanded code is kept.
"""

from __future__ import annotations

import sys
from functools import cache

from eshkol.support.processor import architecture
from eshkol.version import __version__

_ALWAYS = ("r7rs", "exact-closed", "exact-complex", "ieee-float", "full-unicode", "ratios", "syntax-case", "eshkol")
_PROCESSORS = {"aarch64": "aarch64", "arm64": "aarch64", "x86_64": "x86-64", "amd64": "x86-64"}
_SYSTEMS = {"linux": ("posix", "unix", "linux", "gnu-linux"), "darwin": ("posix", "unix", "darwin", "macosx")}


@cache
def features() -> tuple[str, ...]:
    """The feature identifiers of this machine, in the order in which `(features)` lists them."""
    machine = architecture().lower()
    return (
        *_ALWAYS,
        f"eshkol-{__version__}",
        *_SYSTEMS.get(sys.platform, (sys.platform,)),
        _PROCESSORS.get(machine, machine),
        f"{sys.byteorder}-endian",
    )
