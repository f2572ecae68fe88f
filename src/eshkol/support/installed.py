"""How much memory this process may have: what the machine has, or less where a container is given less.

Systems that promise any memory end the process when it is written to; who allocates much asks here first.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")  # where Linux tells what a group of processes is limited to
MEMBERSHIP = Path("/proc/self/cgroup")


@cache
def memory() -> int:
    """Bytes of memory that this process can have; any number where the system does not say."""
    try:
        installed = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        installed = sys.maxsize
    return min([installed, *group_limits(GROUPS, MEMBERSHIP)])


def group_limits(groups: Path, membership: Path) -> list[int]:
    """The limits of the groups that this process is in, as both versions of the interface write them."""
    try:
        paths = [line.split(":", 2)[1:] for line in membership.read_text().splitlines()]
    except (OSError, UnicodeDecodeError):
        return []
    limits = []
    for controllers, path in (pair for pair in paths if len(pair) == 2):
        if controllers and "memory" not in controllers.split(","):
            continue
        root, name = (groups / "memory", "memory.limit_in_bytes") if controllers else (groups, "memory.max")
        own = root / path.lstrip("/")
        for group in (own, *own.parents):  # within a container the path may be that of the host: then its root counts
            if group == root.parent:
                break
            try:
                limits.append(int((group / name).read_text()))
            except (OSError, ValueError):  # not there, or "max"
                continue
    return limits
