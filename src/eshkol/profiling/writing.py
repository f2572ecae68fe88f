"""Files of profiles: whole, or not there, and an error that says why. What was found stays where it is."""

from __future__ import annotations

import os
from pathlib import Path

from eshkol.errors import CheckpointError, EshkolError
from eshkol.io.files import reason, replacing

HINT = "the profile is still there: write it to another place"


def write(path: str | Path, text: str) -> None:
    """Put a text at a path; an earlier file stays as it was until all is written."""
    place = os.path.expanduser(os.fspath(path))
    data = text.encode()
    try:
        if os.path.exists(place) and not os.path.isfile(place) and not os.path.isdir(place):  # a device, or a pipe
            with open(place, "wb", buffering=0) as device:
                device.write(data)
        else:
            with replacing(place, "profile") as file:
                view = memoryview(data)
                while view:
                    view = view[file.write(view) :]
    except OSError as error:
        raise EshkolError(f"profile: cannot write {place!r}: {reason(error)}", hint=HINT) from None
    except CheckpointError as error:
        raise EshkolError(error.message, hint=HINT) from None
