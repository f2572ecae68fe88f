"""The kind of processor, as the system names it: `x86_64`, `aarch64`, …; asked at every start."""

from __future__ import annotations

import os


def architecture() -> str:
    """What `platform.machine()` says, without that module where the system answers by itself."""
    if hasattr(os, "uname"):
        return os.uname().machine
    import platform

    return platform.machine()
