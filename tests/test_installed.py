"""Memory that a process may have, where containers are given less than the machine has."""

from __future__ import annotations

from pathlib import Path

import pytest

from eshkol.support import installed

CASES = {  # what the system says of a process; the files of limits; what they limit it to
    "second version": (
        "0::/a/b\n",
        {"memory.max": "max", "a/memory.max": "4096", "a/b/memory.max": "8192"},
        [8192, 4096],
    ),
    "first version": ("4:cpu,memory:/x\n1:cpu:/y\n", {"memory/x/memory.limit_in_bytes": "77"}, [77]),
    "the path is the host's": ("0::/far/away\n", {"memory.max": "512"}, [512]),
    "no limit": ("0::/\n", {"memory.max": "max"}, []),
    "other controllers": ("1:cpu:/y\n", {"memory/y/memory.limit_in_bytes": "77"}, []),
    "lines of no sense": ("??\n", {"memory.max": "512"}, []),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_limits_of_groups(case: tuple[str, dict[str, str], list[int]], tmp_path: Path) -> None:
    membership, files, wanted = case
    (tmp_path / "self").write_text(membership)
    for name, text in files.items():
        path = tmp_path / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert installed.group_limits(tmp_path / "groups", tmp_path / "self") == wanted


def test_systems_without_groups_have_none(tmp_path: Path) -> None:
    assert installed.group_limits(tmp_path / "nowhere", tmp_path / "nothing") == []
    assert installed.memory() > 1 << 20
