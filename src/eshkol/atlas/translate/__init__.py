"""Translators: other notations in, Atlas programs out.

`translate_kernel` reads JSON kernels (scalar code over device arrays), `translate_circuit` reads circuits
of generators over class memory. Both write with `ProgramBuilder`, and answer any input that is not
legal with an `IsaError` that says where the fault stands.
"""

from eshkol.atlas.translate.circuit import translate_circuit
from eshkol.atlas.translate.kernel import translate_kernel

__all__ = ["translate_circuit", "translate_kernel"]
