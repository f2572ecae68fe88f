"""How long a user waits before anything happens: imports and the command line."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from bench.harness import Result, race

TITLE = "Start-up"
CASES = {
    "python alone": "pass",
    "import eshkol": "import eshkol",
    "import numpy": "import numpy",
    "import eshkol and make a tensor": "import eshkol; eshkol.tensor([1.0])",
    "import the reference backend": "import eshkol.backends.reference",
    "eshkol --version": "from eshkol.cli import main; main(['--version'])",
}


def _start(code: str) -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)


def run() -> list[Result]:
    return [
        race("fresh process", {name: _start(code) for name, code in CASES.items()}, work=1, unit="starts", budget=2.0)
    ]
