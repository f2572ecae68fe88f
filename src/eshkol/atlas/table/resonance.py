"""Atlas-specific instructions: resonance classes, neighbours, accumulation, phase, boundary map."""

from __future__ import annotations

import numpy as np

from eshkol.atlas import classes
from eshkol.atlas.isa import Effect, Group, Instruction, LaneFault, Values
from eshkol.atlas.table.rows import PRED, TY, count, out, row, use
from eshkol.atlas.types import ALL_TYPES, NARROW_INTEGERS, Array, Type

G = Group.ATLAS
CLASS_OF_BYTE = np.array([classes.resonance_class(b) for b in range(256)], np.uint8)
MIRROR_OF_CLASS = np.array([classes.mirror(c) for c in range(classes.CLASSES)], np.uint8)


def _class_of(i: Instruction, t: Type, a: Array) -> Array:
    return np.asarray(CLASS_OF_BYTE[a.astype(np.int64) & 0xFF])


def _mirror(i: Instruction, t: Type, a: Array) -> Array:
    bad = (a < 0) | (a >= classes.CLASSES)
    if bad.any():
        raise LaneFault(bad, f"class {a[bad][0]} does not exist: classes are 0 to {classes.CLASSES - 1}")
    return MIRROR_OF_CLASS[a.astype(np.int64)]


def _boundary(i: Instruction, t: Type, a: Array) -> Array:
    cls, page, byte = a >> 16, (a >> 8) & 0xFF, a & 0xFF
    bad = (cls >= classes.CLASSES) | (page >= classes.PAGES)
    if bad.any():
        where = f"class {cls[bad][0]}, page {page[bad][0]}"
        raise LaneFault(bad, f"{where}: there are {classes.CLASSES} classes of {classes.PAGES} pages")
    linear = cls.astype(np.uint64) * np.uint64(classes.CLASS_BYTES)
    return linear + page.astype(np.uint64) * np.uint64(classes.PAGE_BYTES) + byte.astype(np.uint64)


CLASS = count("class_id", 0, classes.CLASSES - 1)
K = count("k", 0, classes.MAX_NEIGHBOURS - 1)

row("ClsGet", G, "dst = the resonance class of the low byte of src", (out("dst", Type.U8), use("src")),
    Values(_class_of), NARROW_INTEGERS)  # fmt: skip
row("MIRROR", G, "dst = the mirror of class src; src of 96 or more is an error", (out("dst", Type.U8), use("src")),
    Values(_mirror), NARROW_INTEGERS, traps=True)  # fmt: skip
row("UnityTest", G, "pred = class src is one of the unity classes 1 and 4", (PRED, use("src")),
    Values(lambda i, t, a: np.isin(a, list(classes.UNITY))), NARROW_INTEGERS)  # fmt: skip
row("NBRLoad", G, "dst = element 0 of the memory of the k-th neighbour of class src; bad k is an error",
    (TY, out("dst", "ty"), use("src", "integer"), K),
    Effect(lambda m, i: m.neighbour(i.src, i.k, i.dst, i.ty, write=False)), ALL_TYPES, traps=True)  # fmt: skip
row("NBRStore", G, "store src in element 0 of the memory of the k-th neighbour of class dst",
    (TY, use("dst", "integer"), use("src", "ty"), K),
    Effect(lambda m, i: m.neighbour(i.dst, i.k, i.src, i.ty, write=True)), ALL_TYPES, traps=True)  # fmt: skip
row("ResAccum", G, "R[class] += src exactly, shared by the launch; dst = R[class] as F64",
    (out("dst", Type.F64), use("src"), CLASS),
    Effect(lambda m, i: m.accumulate(i.dst, i.src, i.class_id)), ALL_TYPES, traps=True)  # fmt: skip
row("PhaseRead", G, "dst = (phase - 8·class) mod 768", (out("dst", Type.U32), CLASS),
    Effect(lambda m, i: m.read_phase(i.dst, i.class_id)))  # fmt: skip
row("PhaseWrite", G, "phase = (src + 8·class) mod 768; the highest lane decides", (use("src", "integer"), CLASS),
    Effect(lambda m, i: m.write_phase(i.src, i.class_id)))  # fmt: skip
row("BoundMap", G, "dst = class·12288 + page·256 + byte of src = class<<16 | page<<8 | byte",
    (out("dst", Type.U64), use("src")), Values(_boundary),
    frozenset({Type.U32, Type.U64}), traps=True)  # fmt: skip
