"""Whether a GPU runs kernels without checks, asked without one."""

from __future__ import annotations

from eshkol.backends.cuda.translate import in_base_instructions
from eshkol.backends.lanes.promises import promises
from eshkol.backends.lanes.ranges import REACHED, SHARED_MEMORY
from eshkol.schedule.kernels.kernel import Kernel


def trusted(kernel: Kernel) -> bool:
    """Whether that the accesses of a kernel are in range follows from its code and its launch."""
    assert kernel.launch is not None
    program = in_base_instructions(kernel.program)
    relied_on = promises(program)
    sizes = {p.name: p.ty.size_bytes * p.count for p in program.params if p.count is not None}
    sizes[SHARED_MEMORY] = kernel.launch.shared_memory
    accesses = [k for k, i in enumerate(program.instructions) if i.op.name in REACHED]
    return (
        relied_on is not None
        and relied_on.known.trusted.issuperset(accesses)
        and relied_on.hold(kernel.launch.total_threads, sizes, {})
    )
