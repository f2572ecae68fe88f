"""How long a program waits for the collector while it keeps 500 MB alive: `python -m bench pauses`.

Runs pauses.esk and prints, after each part, what was alive, how often and how long the program waited so far, and the
longest pause: by the clock, and by the processor time that the collector itself took, which is what counts on a machine
that does other work at the same time. Fails where that is more than MOST.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import scheme

PROGRAM = Path(__file__).with_suffix(".esk")
MOST = 0.05  # seconds
COLUMNS = ("after", "alive", "resident", "pauses", "all of them", "longest", "processor's part")


def main(_words: list[str]) -> int:
    done = subprocess.run(scheme.eshkol("run", str(PROGRAM)), capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        return 1
    table = Table(*COLUMNS, title="Pauses of the collector")
    worst = 0.0
    for line in done.stdout.splitlines():
        numbers = {name: int(number) for name, number in re.findall(r"\(([a-z-]+) \. (\d+)\)", line)}
        worst = numbers["longest-pause-processor-nanoseconds"] / 1e9
        table.add_row(
            line[1 : line.index(" ")],
            f"{numbers['live-bytes'] / 1e6:.0f} MB",
            f"{numbers['resident-bytes'] / 1e6:.0f} MB",
            str(numbers["pauses"]),
            f"{numbers['paused-nanoseconds'] / 1e9:.2f} s",
            f"{numbers['longest-pause-nanoseconds'] / 1e6:.1f} ms",
            f"{worst * 1e3:.1f} ms",
        )
    Console().print(table)
    print(f"the longest takes {worst * 1e3:.1f} ms of the processor; at most {MOST * 1e3:.0f} are wanted")
    return int(worst > MOST)
