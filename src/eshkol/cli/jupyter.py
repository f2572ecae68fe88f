"""The commands `eshkol jupyter install` and `eshkol jupyter run`.

Jupyter and what stands on it are imported by the command that needs them; where they are missing it says so.
"""

from __future__ import annotations

import argparse
from typing import Any

from eshkol.cli.usage import UsageError
from eshkol.errors import EshkolError

EPILOG = """\
examples:
  eshkol jupyter install                     for this user: Jupyter then offers Eshkol for new notebooks
  eshkol jupyter install --prefix .venv      for the Jupyter of a virtual environment
  jupyter lab                                Jupyter itself is a package of its own (pip install jupyterlab)"""

MISSING = "install what notebooks need: pip install 'eshkol[notebook]'"


def add_commands(commands: Any) -> None:
    install = commands.add_parser(
        "install",
        help="tell Jupyter of the Eshkol kernel",
        description="Write the kernelspec by which Jupyter finds and starts the Eshkol kernel.",
        epilog=EPILOG,
    )
    where = install.add_mutually_exclusive_group()
    where.add_argument("--user", action="store_true", help="for this user; the default")
    where.add_argument("--prefix", metavar="FOLDER", help="below FOLDER/share/jupyter, such as a virtual environment")
    install.add_argument("--name", default="eshkol", help="what Jupyter calls the kernel by (default: eshkol)")
    install.add_argument("--display-name", default="Eshkol", metavar="NAME", help="what people see (default: Eshkol)")
    install.set_defaults(run=_install)
    run = commands.add_parser(
        "run",
        help="serve a notebook; Jupyter starts this itself",
        description="Serve the notebook that a connection file describes, until it ends. Jupyter starts this itself.",
    )
    run.add_argument("-f", dest="file", required=True, metavar="FILE", help="the connection file")
    run.set_defaults(run=_run)


def _install(options: argparse.Namespace) -> None:
    try:
        from eshkol.bindings.notebook import kernel, spec
    except ImportError as error:
        raise EshkolError(f"the notebook kernel needs {error.name or error}", hint=MISSING) from None
    del kernel  # it can be imported, so that it will start
    try:
        folder = spec.install(prefix=options.prefix, name=options.name, display_name=options.display_name)
    except ValueError as error:  # a name that Jupyter does not take
        raise UsageError(str(error), "eshkol jupyter install") from None
    print(f"installed the kernel {options.name} in {folder}")


def _run(options: argparse.Namespace) -> None:
    try:
        from eshkol.bindings.notebook.kernel import main
    except ImportError as error:
        raise EshkolError(f"the notebook kernel needs {error.name or error}", hint=MISSING) from None
    main(["-f", options.file])
