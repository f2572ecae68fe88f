"""Where the `eshkol` command begins: Ctrl-C ends it without a traceback, from the first line here to the last.

While its parts are imported, and again when everything is done, that is the system's business; in between it is a
KeyboardInterrupt. What Python does before it comes here (its own start, the script that calls `main`) is not ours.
"""

import gc
import signal
import sys

signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> int:
    """Run the command line of the process; the exit code."""
    from eshkol.cli.main import INTERRUPTED
    from eshkol.cli.main import main as run
    from eshkol.support.interrupts import on_interrupt

    try:
        signal.signal(signal.SIGINT, on_interrupt)
        code = run()
    except KeyboardInterrupt:  # before `run` has begun to care for it, or after it has ended
        return INTERRUPTED
    else:
        tiers = sys.modules.get("eshkol.codegen.tiers")
        if code == 0 and tiers is not None:
            tiers.finish_behind()
        return code
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        gc.freeze()  # Python need not find out what of all this is garbage: that took seconds after large programs
