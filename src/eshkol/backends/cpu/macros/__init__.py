"""Array instructions as native code of their own, where that is faster than their expansion.

One module per family; `LOWERINGS` says by mnemonic how an instruction becomes a `Macro`, or that it does not.
"""

from __future__ import annotations

from eshkol.atlas.expand import is_block_wide, is_collective
from eshkol.atlas.isa import Instruction
from eshkol.atlas.operands import BufferOffset, Shared, address_base
from eshkol.atlas.validate import memory_operands
from eshkol.backends.cpu.kernels.macro import Lowering, Macro
from eshkol.backends.cpu.macros import attention_ways as attention
from eshkol.backends.cpu.macros import conv, conv_weight, fft, gemm, gemm_int8, maps, reduce, rows, sparse
from eshkol.llvm.targets import Target

LOWERINGS: dict[str, Lowering] = {
    **gemm.LOWERINGS,
    **gemm_int8.LOWERINGS,
    **reduce.LOWERINGS,
    **rows.LOWERINGS,
    **maps.LOWERINGS,
    **sparse.LOWERINGS,
    **fft.LOWERINGS,
    **attention.LOWERINGS,
    **conv.LOWERINGS,
    **conv_weight.LOWERINGS,
}


def lower(instruction: Instruction, target: Target) -> Macro | None:
    """The instruction as a macro; None where it is to be expanded instead."""
    lowering = LOWERINGS.get(instruction.op.name)
    if lowering is None or (is_collective(instruction) and is_block_wide(instruction)):
        return None
    bases = [address_base(address) for _, address in memory_operands(instruction)]
    if not all(isinstance(base, BufferOffset | Shared) for base in bases):  # elsewhere nothing is aligned
        return None
    return lowering(instruction, target)
