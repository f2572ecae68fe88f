"""How attention is computed: by tiles of BF16 where the machine multiplies such, else by vectors of F32 or F64."""

from __future__ import annotations

from eshkol.atlas.isa import Instruction
from eshkol.backends.cpu.kernels.macro import Lowering, Macro, Phase
from eshkol.backends.cpu.macros.attention import WIDEST_HEAD, AttentionPlan
from eshkol.backends.cpu.macros.attention_amx import TilePlan, suits
from eshkol.llvm.targets import Target


def attention(i: Instruction, target: Target) -> Macro | None:
    """Both instructions; the block_size of FlashAttention is how the machine likes it."""
    if i.head_dim > WIDEST_HEAD:
        return None
    plan = TilePlan(i, target) if suits(i, target) else AttentionPlan(i, target)
    pack, attend = plan.parts()
    heads, blocks = i.batch * i.heads, plan.words[4]
    declared = tuple(dict.fromkeys([*pack.k.declarations, *attend.k.declarations]))
    phases = (Phase(pack.k.function_name, heads * blocks, 4), Phase(attend.k.function_name, heads * blocks))
    functions = (pack.k.function(), attend.k.function())
    return Macro(functions, phases, plan.words, declared, heads * plan.head_bytes)


LOWERINGS: dict[str, Lowering] = {"Attention": attention, "FlashAttention": attention}
