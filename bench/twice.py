"""Derivatives of derivatives, products with Jacobians and large Jacobians, beside the functions that they are of.

The program is calculus/twice.esk, which measures itself. What was not compiled says so in its name, and so does the
memory of a run; aims are 4 × the function, 8 × for products with Hessians.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bench.harness import Result

TITLE = "Derivatives of derivatives beside functions"
PROGRAM = Path(__file__).parent / "calculus" / "twice.esk"


def run() -> list[Result]:
    command = [sys.executable, "-m", "eshkol", "run", str(PROGRAM)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [_row(*line.split("|")) for line in said.splitlines()]


def _row(name: str, function: str, derivative: str, used: str, compiled: str) -> Result:
    memory = f"{int(used) / 1e6:.2f} MB" if compiled == "1" else "not compiled"
    return Result(f"{name} ({memory})", 1.0, "run", {"function": float(function), "derivative": float(derivative)})
