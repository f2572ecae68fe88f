"""Factors of derivative rules as instructions of typed programs.

Comes in: a tree of `factors.py` and the registers that its names stand for. Goes out: the register of its value,
written where a program is being written (adjoint.py).
"""

from __future__ import annotations

from eshkol.calculus.factors import Apply, Tree
from eshkol.calculus.ir import F64, I1, TypedValue
from eshkol.calculus.writer import ProgramWriter

RELATIONS = {"=": "eq", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


class FactorWriter(ProgramWriter):
    """Writes programs in which there are rules."""

    def factor(self, tree: Tree, names: dict[str, TypedValue]) -> TypedValue:
        """A factor of a derivative rule."""
        if isinstance(tree, float):
            return self.literal(tree, F64)
        if isinstance(tree, str):
            return names[tree]
        if tree.operator == "if":
            test, yes, no = tree.operands
            return self.one_of(
                self._test(test, names), lambda: self.factor(yes, names), lambda: self.factor(no, names), F64
            )
        return self.op("math", [self.factor(part, names) for part in tree.operands], F64, tree.operator)

    def _test(self, tree: Tree, names: dict[str, TypedValue]) -> TypedValue:
        """A condition in a rule."""
        if not isinstance(tree, Apply):
            return self.literal(tree == 1.0, I1)
        match tree.operator, tree.operands:
            case "not", (one,):
                return self.op("not", [self._test(one, names)], I1)
            case "and", (one, other):
                no = lambda: self.literal(False, I1)
                return self.one_of(self._test(one, names), lambda: self._test(other, names), no, I1)
            case "or", (one, other):
                yes = lambda: self.literal(True, I1)
                return self.one_of(self._test(one, names), yes, lambda: self._test(other, names), I1)
        operands = [self.factor(part, names) for part in tree.operands]
        return self.op("compare", operands, I1, RELATIONS[tree.operator])
