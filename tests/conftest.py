"""Shared set-up: helper modules beside the tests can be imported by name."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

# Compiled programs are kept beside the tests' other leftovers, not in the user's own cache.
os.environ.setdefault("ESHKOL_CACHE_DIR", str(Path(__file__).parent.parent / ".pytest_cache" / "eshkol"))

for folder in ("", "atlas", "ops", "lang", "calculus", "nn"):
    sys.path.insert(0, str(Path(__file__).parent / folder))

# Some tests press Ctrl-C. Whoever runs them in the background may ignore it, and then so would they.
signal.signal(signal.SIGINT, signal.default_int_handler)

from hypothesis import settings  # noqa: E402

if side := os.environ.get("ESHKOL_GUARD"):
    from eshkol.backends.cpu import backend as cpu
    from guarded import GuardedBuffer

    GuardedBuffer.side = side
    # It stands in for the class without deriving from it, which would allocate twice.
    cpu.Buffer = GuardedBuffer  # type: ignore[assignment, misc]

# A busy machine is slow, not wrong: no test fails for the time one example takes. Continuous integration takes the
# same examples every time, so that a change is judged by what it does; runs at home look for new ones.
settings.register_profile("eshkol", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "eshkol")
