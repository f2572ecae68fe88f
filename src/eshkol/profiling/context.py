"""`ek.profile()`: a profile of what is done within a block."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from eshkol.errors import EshkolError
from eshkol.profiling.recording import HERTZ, Recording
from eshkol.profiling.result import Profile


class profile:
    """Watch what is done within the block; afterwards it has all that `Profile` has.

    >>> with ek.profile(memory=True) as seen: step(batch)
    >>> print(seen)
    >>> seen.save("profile.html")

    `hertz` is how often a second of processor time a thread is sampled; `kernels` whether every kernel's time is taken
    down; `memory` whether it is taken down who allocates.
    """

    def __init__(self, *, hertz: int = HERTZ, kernels: bool = True, memory: bool = False) -> None:
        self._recording: Recording | None = Recording(hertz, kernels=kernels, memory=memory)
        self._found: Profile | None = None

    def __enter__(self) -> profile:
        if self._recording is None:
            raise EshkolError(
                "this profile was taken already", hint="each block has a profile of its own: ek.profile()"
            )
        self._recording.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        recording, self._recording = self._recording, None
        assert recording is not None
        self._found = recording.stop()

    def region(self, name: str) -> region:
        """A part of the block under a name of its own: `with seen.region("forward"): …`."""
        return region(name)

    @property
    def result(self) -> Profile:
        """What was found."""
        if self._found is None:
            raise EshkolError("this profile has not ended yet", hint="look at it behind its block")
        return self._found

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.result, name)

    def __str__(self) -> str:
        return repr(self) if self._found is None else str(self._found)


class region:
    """What is done within the block, under a name, where a profile is being taken; else nothing."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._recording: Recording | None = None

    def __enter__(self) -> None:
        from eshkol.profiling.recording import current

        self._recording = current()
        if self._recording is not None:
            self._recording.open(self._name)

    def __exit__(self, *_: object) -> None:
        from eshkol.profiling.recording import current

        if self._recording is not None and self._recording is current():
            self._recording.close(self._name)
