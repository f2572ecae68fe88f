"""The command `eshkol conformance`: what `eshkol.conformance.command` has, with the errors of this command line."""

from __future__ import annotations

from eshkol.conformance.command import EPILOG as EPILOG
from eshkol.conformance.command import add_options

add_commands = add_options
