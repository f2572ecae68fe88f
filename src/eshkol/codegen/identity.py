"""What names the sources that code is made by: a part of the key of everything that is compiled and kept."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from eshkol.lang.files import STANDARD, SUFFIXES
from eshkol.runtime.library import PATH as RUNTIME
from eshkol.support.keys import files_key


@cache
def source_key() -> str:
    """What names the sources that programs are expanded and compiled by: what other sources made is never taken.

    Their names, sizes and times, not their text: this is asked at every start.
    """
    package = Path(__file__).parents[1]
    return files_key(
        [package / folder for folder in ("lang", "codegen", "llvm", "runtime")], (".py", ".ll", RUNTIME.name)
    )


@cache
def library_key() -> str:
    """What names the texts of the standard library, in the same way."""
    return files_key([Path(folder) for folder, _, _ in os.walk(STANDARD)], SUFFIXES)
