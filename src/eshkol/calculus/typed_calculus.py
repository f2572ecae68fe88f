"""The primitives that typed programs know: derivatives inside of derivatives (typed_vectors.py has the others).

`(gradient f x)` becomes a call of the gradient of f, which is a typed program like any other (adjoint.py); without a
point it is a procedure that waits for one.
"""

from __future__ import annotations

from eshkol.calculus import ir
from eshkol.calculus.abstract import NIL, Abstract, Fields, Known, Leaf, NotFast
from eshkol.calculus.ir import F64
from eshkol.calculus.specialize import DERIVED, Key, Rule, Specializer
from eshkol.calculus.typed_data import spelled, vector
from eshkol.calculus.typed_numbers import primitive
from eshkol.calculus.typed_vectors import PRIMITIVES as PRIMITIVES  # with those of this module: all
from eshkol.calculus.writer import as_list


def _point(s: Specializer, a: Abstract, key: Key) -> Abstract:
    """What a derivative is taken by: numbers in registers, or memory of them."""
    match a:
        case Known(datum=float()):
            return Leaf(s.f64(a))
        case Leaf(value=value) if value.type == F64 or value.type in (ir.array(F64), ir.cell(F64)):
            return a
        case Leaf(value=value) if value.type == ir.vector(F64):
            return PRIMITIVES["vector-copy"](s, [a], key)
        case Leaf(value=value) if value.type.kind == "pairs" and value.type.length is not None:
            return _point(s, spelled(s, a), key)
        case Fields(kind="vector", items=items) if items:
            return vector(s, [_point(s, item, key) for item in items], key)
        case Fields(kind="pair", items=(first, rest)):
            return Fields("pair", (_point(s, first, key), rest if rest == Known(NIL) else _point(s, rest, key)))
    raise NotFast("a derivative inside of another by exact numbers, or by data that it does not know")


def _fresh(s: Specializer, a: Abstract, key: Key) -> Abstract:
    """A gradient as data of its own, which may be changed."""
    match a:
        case Fields(kind="vector", items=items):
            return vector(s, [_fresh(s, item, key) for item in items], key)
        case Fields(kind="pair", items=(first, rest)):
            return Fields("pair", (_fresh(s, first, key), _fresh(s, rest, key)))
    return a


def _operator(name: str) -> Rule:
    def rule(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
        procedure, *points = args
        if not points:
            return Fields(f"derivative by {name}", (procedure,))
        points = [_point(s, point, (key, k)) for k, point in enumerate(points)]
        if name == "derivative" and not (
            len(points) == 1 and isinstance(points[0], Leaf) and points[0].value.type == F64
        ):
            raise NotFast("a derivative by what is no number")
        value, found = s.differentiated(procedure, points)
        partials = [_fresh(s, part, (key, "by", k)) for k, part in enumerate(found)]
        whole = partials[0] if len(partials) == 1 else as_list(partials)
        return Fields("values", (value, whole)) if name == "value-and-gradient" else whole

    return rule


for _kind, _name in DERIVED.items():
    primitive(_name)(_operator(_name))
