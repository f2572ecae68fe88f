"""`eshkol run --profile --memory`: a profile of a whole program, told when it ends, however it ends."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

from rich.console import Console

from eshkol.profiling.recording import Recording, current
from eshkol.profiling.result import Profile, way

T = TypeVar("T")


def profiled(run: Callable[[], T], path: str, memory: bool) -> T:
    """What `run` gives; its profile is written to a path, or shown on stderr where there is none."""
    if path:
        way(path)  # a name that says nothing is told before the program runs, not after
    recording = Recording(memory=memory).start()
    try:
        result = run()
    except BaseException:
        try:
            _tell(recording, path)
        except Exception as error:  # the program's own error is the one to be told
            print(f"eshkol: the profile is lost: {error}", file=sys.stderr)
        raise
    _tell(recording, path)
    return result


def _tell(recording: Recording, path: str) -> None:
    if current() is not recording:
        print("eshkol: the program has ended its profile itself (profile-stop)", file=sys.stderr)
        return
    profile = recording.stop()
    if path:
        _saved(profile, path)
    else:
        profile.print()


def _saved(profile: Profile, path: str) -> None:
    try:
        profile.save(path)
    except Exception:
        profile.print()  # so that nothing is lost
        raise
    Console(stderr=True).print(f"eshkol: the profile is in {path}", highlight=False)
