"""PTX without jumps, carried out here: by the 32 lanes of a warp, in NumPy.

Comes in: the lines that a `Kernel` has written, and registers that are known. Goes out: what all registers hold then.
Only those instructions are known that tests have needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import numpy as np

LANES = np.arange(32)
Values = dict[str, np.ndarray]
DOES: dict[str, Callable[..., np.ndarray]] = {
    "add": lambda x, y: x + y, "mul": lambda x, y: x * y, "mad": lambda x, y, z: x * y + z,
    "and": lambda x, y: x & y, "xor": lambda x, y: x ^ y, "shr": lambda x, y: x >> y,
    "shf": lambda x, y, by: (x << by) | (y >> (32 - by)), "neg": lambda x: x ^ (1 << 31),
    "cvt": lambda x: x, "cvta": lambda x: x, "mov": lambda x: x,
    "selp": lambda x, y, p: np.where(p.astype(bool), x, y),
    "shfl": lambda x, mask, _: x[LANES ^ mask.astype(int)],
    "setpge": lambda x, y: x >= y, "setpne": lambda x, y: x != y,
}  # fmt: skip
_WORD, _LONG = (1 << 32) - 1, (1 << 64) - 1


def run(lines: Iterable[str], known: Values, load: Callable[[int], int]) -> Values:
    """Registers, as whole numbers of each lane; `load` gives a word of memory."""
    held = {name: np.array(np.broadcast_to(x, 32), object) for name, x in known.items()}

    def value(operand: str) -> np.ndarray:
        if re.fullmatch(r"-?\d+|0x[0-9a-f]+", operand):
            return np.full(32, int(operand, 0), object)
        if operand.startswith("0f"):
            return np.full(32, int(operand[2:], 16), object)
        return held[operand]

    for line in lines:
        found = re.fullmatch(r"\s*([a-z][\w.:]*) (.*);", line)
        assert found is not None, line
        name, operands = found[1], re.findall(r"\{[^}]*\}|\[[^]]*\]|[^,\s]+", found[2])
        aim, given = operands[0], operands[1:]
        base, kind = name.split(".")[0], name.rsplit(".", 1)[-1]
        if name == "ld.global.b32":
            at, further = re.fullmatch(r"\[(%\w+)\+(\d+)\]", given[0]).groups()  # type: ignore[union-attr]
            held[aim] = np.array([load(x + int(further)) for x in held[at]], object)
            continue
        if name == "mov.b64" and aim.startswith("{"):
            low, high = aim.strip("{}").split(", ")
            held[low], held[high] = held[given[0]] & _WORD, held[given[0]] >> 32
            continue
        x = [value(operand) for operand in given if operand != "0xffffffff"]
        wrap = _LONG if kind in ("u64", "b64") else _WORD
        how = name.split(".")[1] if base == "setp" else ""
        result = DOES[base + how](*x)
        if base == "mad" and ".wide." in name:
            wrap = _LONG
        held[aim] = np.asarray(result, object) & wrap if base != "setp" else result
    return held
