"""Where the `eshkol` command begins: until its parts are imported, Ctrl-C ends the process without a traceback."""

import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> int:
    """Run the command line of the process; the exit code."""
    from eshkol.cli import main as run

    signal.signal(signal.SIGINT, signal.default_int_handler)
    return run()
