"""A new project: its folder with all that belongs in it, or nothing where something is wrong.

Comes in: a name and the folder in which the project is to be. Goes out: its folder. The files are written beside their
place, which they take in one step.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from eshkol.errors import ProjectError
from eshkol.lang.files import shown
from eshkol.project import MANIFEST
from eshkol.project.manifest import NAME_HINT, name_problem

FILES = {  # what is in a new project; {name} is its name
    MANIFEST: """\
[project]
name = "{name}"
version = "0.1.0"
main = "src/{name}.esk"

[dependencies]
# geometry = {{ path = "../geometry" }}
# algebra = {{ git = "https://example.org/algebra.git", rev = "v1.0" }}
""",
    "src/{name}.esk": """\
;;; {name}: the program that `eshkol run` runs.

(import (scheme base) (scheme process-context) (scheme write)
        (prefix ({name} greeting) {name}:))

(define guests (cdr (command-line)))

(for-each (lambda (guest)
            (display ({name}:greeting guest))
            (newline))
          (if (null? guests) '("world") guests))
""",
    "src/{name}/greeting.esk": """\
;;; A library of the project; other files import it as ({name} greeting).

(define-library ({name} greeting)
  (import (scheme base))
  (export greeting)
  (begin

    (define (greeting guest)
      "What is said to a guest."
      (string-append "Hello, " guest "!"))))
""",
    "tests/greeting.esk": """\
;;; `eshkol test` runs the files of this folder.

(import (scheme base) (eshkol testing) ({name} greeting))

(test-case "a guest is greeted by name"
  (check-equal (greeting "Ada") "Hello, Ada!"))

(test-case "a guest is a string"
  (check-error (greeting 5) "string"))
""",
    ".gitignore": "build/\n",
    "README.md": """\
# {name}

```console
$ eshkol run           # the program, src/{name}.esk; `eshkol run . Ada` gives it arguments
$ eshkol test          # the files of tests/
$ eshkol fmt           # lay out the sources
```
""",
}


def make(name: str, inside: Path) -> Path:
    """Make a project in a folder of its name."""
    problem = name_problem(name)
    if problem is not None:
        raise ProjectError(problem, hint=NAME_HINT)
    place = inside / name
    if os.path.lexists(place):
        raise ProjectError(f"{shown(place)} is there already", hint="choose another name, or another folder by --in")
    if not inside.is_dir():
        raise ProjectError(f"there is no folder {shown(inside)}", hint="make it, or choose another by --in")
    temporary = ""
    try:
        temporary = tempfile.mkdtemp(prefix=f".{name}-", dir=inside)
        for file, text in FILES.items():
            path = Path(temporary, file.format(name=name))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.format(name=name), encoding="utf-8")
        os.chmod(temporary, 0o777 & ~_umask())
        os.rename(temporary, place)
        temporary = ""
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ProjectError(f"cannot make {shown(place)}: {reason}; nothing was made") from None
    finally:
        if temporary:
            shutil.rmtree(temporary, ignore_errors=True)
    return place


def _umask() -> int:
    """Which permissions new files do not get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
