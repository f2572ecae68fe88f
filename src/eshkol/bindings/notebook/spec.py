"""The kernelspec: the folder by which Jupyter knows that there is an Eshkol kernel, and how to start it.

Comes in: for whom, and under which name. Goes out: the folder, written.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import KernelSpecManager

NAME, DISPLAY_NAME = "eshkol", "Eshkol"

LOGO = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64" width="64" height="64">
  <g fill="#5b3b8c">
    <circle cx="20" cy="22" r="8"/><circle cx="36" cy="22" r="8"/><circle cx="28" cy="35" r="8"/>
    <circle cx="44" cy="35" r="8"/><circle cx="36" cy="48" r="8"/>
  </g>
  <path d="M36 14 C36 8 42 6 46 4" stroke="#4b7f3a" stroke-width="4" fill="none" stroke-linecap="round"/>
</svg>
"""


def kernelspec(display_name: str = DISPLAY_NAME) -> dict[str, Any]:
    """What kernel.json says: the Python that runs now runs the kernel, too."""
    return {
        "argv": [sys.executable, "-m", "eshkol.bindings.notebook.kernel", "-f", "{connection_file}"],
        "display_name": display_name,
        "language": "eshkol",
        "interrupt_mode": "signal",
        "env": {"MPLBACKEND": "Agg"},  # figures are shown by the kernel
    }


def write(folder: Path, display_name: str = DISPLAY_NAME) -> None:
    """The files of the kernelspec."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernel.json").write_text(json.dumps(kernelspec(display_name), indent=1) + "\n", encoding="utf-8")
    (folder / "logo-svg.svg").write_text(LOGO, encoding="utf-8")


def install(*, user: bool = True, prefix: str | None = None, name: str = NAME, display_name: str = DISPLAY_NAME) -> str:
    """Tell Jupyter of the kernel, for this user or below a prefix; the folder where that stands."""
    with tempfile.TemporaryDirectory() as made:
        write(Path(made), display_name)
        where: str = KernelSpecManager().install_kernel_spec(
            made, kernel_name=name, user=user and prefix is None, prefix=prefix
        )
    return where
