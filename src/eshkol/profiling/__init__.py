"""Profiles: where time and memory go, in Scheme, Python and kernels.

    with ek.profile() as profile:
        train(model)
    print(profile)
    profile.save("profile.html")

Stands on tensors, on the runtime of the language and on `support/observing.py`, through which the house tells what it
does. Nothing of it is imported, and nothing watched, until a profile is asked for.
"""

from eshkol.profiling.context import profile
from eshkol.profiling.recording import Recording, current
from eshkol.profiling.result import Profile
from eshkol.profiling.schedule import export_schedule

__all__ = ["Profile", "Recording", "current", "export_schedule", "profile"]
