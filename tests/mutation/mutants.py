"""Mutants: a module's source with one small change each, as a person might make by mistake.

Comes in: the text of a module. Goes out: `Mutant`s, each of which names its place and the change, and `mutated`, the
changed tree, ready to be compiled. Trees keep the line numbers of the source, so that errors show the right lines.

What is only read by people is left alone: docstrings, annotations, messages of errors, `__repr__`, imports, asserts.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

ARITHMETIC = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.MatMult: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr,
}  # fmt: skip
ORDERED = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult, ast.LShift, ast.RShift)
COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
CONDITIONAL = (ast.If, ast.IfExp, ast.While, ast.comprehension, ast.match_case)
OPPOSITES = {"min": "max", "max": "min", "all": "any", "any": "all", "minimum": "maximum", "maximum": "minimum"}
# Calls whose arguments cannot change places without Python itself refusing them, or to no effect.
UNSWAPPED = frozenset({"isinstance", "issubclass", "getattr", "hasattr", "setattr", "min", "max", "cast", "field"})
ENTERS = frozenset(
    {"rule", "primitive"}
)  # a function under each of the names they are given, whose order means nothing
KEYS = re.compile(r"(^|_)(keys?|whole|form|signature|structure)$")  # names of what a cache is asked for
_ONLY_KEYS = re.compile(r"(^|_)keys?$")
LOOKUPS = frozenset({"get", "keep", "setdefault", "pop"})  # methods of caches, whose first argument is the key
SILENT = frozenset({"__repr__", "__str__", "dump", "dumps"})  # functions whose results only people read


@dataclass(frozen=True)
class Mutant:
    """One change: where it is, what stood there, and what stands there now."""

    module: str  # dotted name
    line: int
    last_line: int
    statement: tuple[int, int]  # first and last line of the innermost statement
    function: str  # qualified name of the innermost function or class, or ""
    name: str  # of the constant or keyword that the place belongs to, or ""
    operator: str
    before: str
    after: str
    place: tuple[int, str, int | None, int]  # number of the parent, field, position in it, which alternative
    compared: tuple[str, ...] = ()  # names of the innermost comparison or condition around it

    @property
    def id(self) -> str:
        parent, field, position, which = self.place
        return (
            f"{self.module}:{self.line}:{self.operator}:{parent}.{field}.{'' if position is None else position}.{which}"
        )


@dataclass(frozen=True)
class _Where:
    """What is known of a place on the way down to it."""

    function: str = ""
    name: str = ""
    statement: tuple[int, int] = (0, 0)
    compared: tuple[str, ...] = ()
    strings: bool = False  # whether text here decides what is done
    types: bool = False  # whether a union here is one of types


def mutants(module: str, source: str) -> list[Mutant]:
    """All mutants of a module."""
    tree = ast.parse(source)
    numbers = {id(node): k for k, node in enumerate(ast.walk(tree))}
    found = []
    for parent, field, position, node, where in _places(tree, _Where()):
        for which, (operator, new) in enumerate(_alternatives(parent, field, node, where)):
            before, after = _text(node), _text(new)
            if before == after:
                continue
            compared = where.compared
            if operator == "dropped condition":
                compared = _thresholds(node.values[which - 1])
            found.append(
                Mutant(
                    module, node.lineno, node.end_lineno or node.lineno, where.statement, where.function, where.name,
                    operator, before, after, (numbers[id(parent)], field, position, which), compared,
                )
            )  # fmt: skip
    return found


def mutated(source: str, mutant: Mutant) -> ast.Module:
    """The tree of a module with the change made."""
    tree = ast.parse(source)
    parents = list(ast.walk(tree))
    number, field, position, which = mutant.place
    for parent, at, index, node, where in _places(tree, _Where()):
        if parent is parents[number] and (at, index) == (field, position):
            operator, new = _alternatives(parent, at, node, where)[which]
            if (operator, _text(node), _text(new)) != (mutant.operator, mutant.before, mutant.after):
                raise ValueError(f"{mutant.module} has changed since {mutant.id} was made: make the mutants again")
            for inner in ast.walk(new):
                if "lineno" in inner._attributes and not hasattr(inner, "lineno"):
                    ast.copy_location(inner, node)
            if index is None:
                setattr(parent, at, new)
            else:
                getattr(parent, at)[index] = new
            return ast.fix_missing_locations(tree)
    raise ValueError(f"{mutant.module} has no place {mutant.id}: make the mutants again")


def _text(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())


# ---- places ----------------------------------------------------------------------------------------------------------


def _places(node: ast.AST, where: _Where) -> Iterator[tuple[ast.AST, str, int | None, Any, _Where]]:
    """Every statement and expression that may be changed, with its parent and what is known there."""
    for field, value in ast.iter_fields(node):
        for position, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(child, ast.AST) or _unread(node, field, child):
                continue
            inner = _entered(where, node, field, child)
            if isinstance(child, ast.stmt | ast.expr):
                yield node, field, position, child, inner
            yield from _places(child, inner)


def _unread(parent: ast.AST, field: str, child: ast.AST) -> bool:
    """Whether a place has no meaning for a program, or only for people."""
    if field in ("annotation", "returns", "type_comment", "bases", "type_params"):
        return True
    match child:
        case ast.Import() | ast.ImportFrom() | ast.Assert() | ast.JoinedStr() | ast.Global() | ast.Nonlocal():
            return True
        case ast.Expr(value=ast.Constant()):  # docstrings, and ...
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
            return True
        case ast.FunctionDef(name=name) if name in SILENT:
            return True
        case ast.Assign(targets=[ast.Name(id=name)]) if name in ("__all__", "__slots__", "HEAD"):
            return True
        case ast.Assign(value=ast.Call(func=ast.Name(id="TypeVar"))) | ast.TypeIgnore():
            return True
        case ast.Assign(value=ast.Subscript(value=ast.Name(id="tuple" | "dict" | "list" | "Callable"))):
            return True  # the name of a type
        case ast.AnnAssign(annotation=ast.Name(id="TypeAlias")):
            return True
        case ast.ExceptHandler() if field == "type":
            return True
    # What is raised may be deleted as a whole, but its text is for people.
    return isinstance(parent, ast.Raise) or (isinstance(parent, ast.ExceptHandler) and field == "type")


def _entered(where: _Where, parent: ast.AST, field: str, child: ast.AST) -> _Where:
    """What is known one step down."""
    values: dict[str, Any] = {"strings": False, "types": False}
    if isinstance(child, ast.stmt):
        first = min([child.lineno, *(d.lineno for d in getattr(child, "decorator_list", ()))])
        values["statement"] = (first, _own_end(child))
        values["compared"] = ()
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            values["function"] = f"{where.function}.{child.name}".lstrip(".")
        values["name"] = ""
        if isinstance(child, ast.Assign | ast.AnnAssign):
            targets = child.targets if isinstance(child, ast.Assign) else [child.target]
            names = [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
            values["name"] = names[0] if names else ""
    elif isinstance(child, ast.keyword):
        values["name"] = where.name if where.name == "samples" else child.arg or where.name
    elif _is_sample(child) or (isinstance(child, ast.Tuple) and child.elts and all(map(_is_sample, child.elts))):
        values["name"] = "samples"
    if isinstance(child, ast.Compare):
        values["compared"] = _thresholds(child)
    elif isinstance(parent, ast.If | ast.IfExp | ast.While) and field == "test":
        values["compared"] = () if isinstance(child, ast.BoolOp) else _thresholds(child)
    if isinstance(parent, ast.Compare | ast.Dict | ast.MatchValue) or (
        isinstance(parent, ast.Subscript) and field == "slice"
    ):
        values["strings"] = True
    elif isinstance(parent, ast.Tuple | ast.Set | ast.List):
        values["strings"] = where.strings
    if isinstance(parent, ast.Call) and field == "args" and _called(parent) in ("isinstance", "issubclass"):
        values["types"] = True
    elif isinstance(parent, ast.BinOp | ast.Tuple):
        values["types"] = where.types
    return _Where(**{**where.__dict__, **values})


def _thresholds(node: ast.AST) -> tuple[str, ...]:
    """The constants of a module that are mentioned in a comparison."""
    return tuple(n.id for n in ast.walk(node) if isinstance(n, ast.Name) and n.id.isupper())


def _own_end(statement: ast.stmt) -> int:
    """The last line of a statement without those inside it."""
    inner = [s.lineno for s in ast.walk(statement) if isinstance(s, ast.stmt) and s is not statement]
    return max(statement.lineno, min(inner) - 1) if inner else statement.end_lineno or statement.lineno


def _is_sample(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("sample", "Draw")


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


# ---- changes ---------------------------------------------------------------------------------------------------------


def _alternatives(parent: ast.AST, field: str, node: Any, where: _Where) -> list[tuple[str, Any]]:
    """What may stand in a place instead, with the kind of change; the same for the same source, in the same order."""
    found: list[tuple[str, Any]] = []
    if isinstance(node, ast.expr):
        if isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
            return []
        found += _expression(parent, field, node, where)
        if isinstance(parent, ast.If | ast.IfExp | ast.While | ast.comprehension | ast.match_case) and field in (
            "test",
            "ifs",
            "guard",
        ):
            found += _condition(parent, node)
    else:
        found += _statement(node, where)
    return found


def _condition(parent: ast.AST, node: ast.expr) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = [("forced false", ast.Constant(False))]
    # `not` taken away, and `==` for `!=`, are changes of their own.
    opposite = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        opposite = not isinstance(node.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE)
    if not opposite:
        found.append(("negated", ast.UnaryOp(ast.Not(), copy.deepcopy(node))))
    if not isinstance(parent, ast.While):
        found.append(("forced true", ast.Constant(True)))
    return found


def _expression(parent: ast.AST, field: str, node: ast.expr, where: _Where) -> list[tuple[str, Any]]:
    match node:
        case ast.BinOp():
            return _operation(node, where)
        case ast.Compare():
            changed = []
            for k, operator in enumerate(node.ops):
                new = copy.deepcopy(node)
                new.ops[k] = COMPARISONS[type(operator)]()
                changed.append(("comparison", new))
            return changed
        case ast.BoolOp():
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            found: list[tuple[str, Any]] = [("and or", ast.BoolOp(other, copy.deepcopy(node.values)))]
            for k in range(len(node.values)):
                rest = [copy.deepcopy(v) for i, v in enumerate(node.values) if i != k]
                found.append(("dropped condition", rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)))
            return found
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()):
            return [("dropped sign", copy.deepcopy(node.operand))]
        case ast.Constant(value=value):
            return _constant(parent, value, where)
        case ast.Call():
            return _call(node)
        case ast.Tuple() if isinstance(parent, ast.Compare) and isinstance(parent.ops[-1], ast.In | ast.NotIn):
            return []  # to be among some has no order
        case ast.Tuple() if isinstance(parent, ast.Call) and _called(parent) in ("fromkeys", "frozenset", "set"):
            return []  # nor has a set, or what is looked up
        case ast.Tuple() if not where.types and not isinstance(parent, ast.Subscript):
            if not _is_key(parent, field):
                return _swapped(node)
            # What is a key alone is looked up and kept by the same order, whichever that is.
            return [*([] if _is_key(parent, field, _ONLY_KEYS) else _swapped(node)), *_without(node)]
        case ast.Tuple() if isinstance(parent, ast.Subscript) and not where.types:
            return _without(node)
        case ast.List() if _is_key(parent, field):
            return _without(node)
        case ast.Slice():
            return _slice(node)
    return []


def _operation(node: ast.BinOp, where: _Where) -> list[tuple[str, Any]]:
    if where.types and isinstance(node.op, ast.BitOr):
        return [("dropped type", copy.deepcopy(node.left)), ("dropped type", copy.deepcopy(node.right))]
    sides = (node.left, node.right)
    if any(isinstance(x, ast.JoinedStr) or (isinstance(x, ast.Constant) and isinstance(x.value, str)) for x in sides):
        return []
    found: list[tuple[str, Any]] = []
    if not any(isinstance(x, ast.Tuple | ast.List) for x in sides):  # of tuples only the sum is defined
        found.append(
            ("arithmetic", ast.BinOp(copy.deepcopy(sides[0]), ARITHMETIC[type(node.op)](), copy.deepcopy(sides[1])))
        )
    if isinstance(node.op, ORDERED):
        found.append(("swapped operands", ast.BinOp(copy.deepcopy(sides[1]), node.op, copy.deepcopy(sides[0]))))
    return found


def _constant(parent: ast.AST, value: Any, where: _Where) -> list[tuple[str, Any]]:
    if isinstance(value, bool):
        return [("constant", ast.Constant(not value))]
    if isinstance(value, int | float):
        return [("constant", ast.Constant(value + 1))] if value + 1 != value else []
    if isinstance(value, str) and value and where.strings:
        return [("constant", ast.Constant(value + "_"))]
    return []


def _call(node: ast.Call) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    name = _called(node)
    if name in OPPOSITES:
        new = copy.deepcopy(node)
        if isinstance(new.func, ast.Name):
            new.func.id = OPPOSITES[name]
        elif isinstance(new.func, ast.Attribute):
            new.func.attr = OPPOSITES[name]
        found.append(("opposite call", new))
    plain = not any(isinstance(a, ast.Starred) for a in node.args)
    names = name in ENTERS and all(isinstance(a, ast.Constant) for a in node.args)
    if len(node.args) >= 2 and plain and not names and name not in UNSWAPPED and name != "range":
        found += _swapped(node)
    if name == "range" and node.args and plain:
        at = 0 if len(node.args) == 1 else 1
        for operator in (ast.Add(), ast.Sub()):
            new = copy.deepcopy(node)
            new.args[at] = ast.BinOp(new.args[at], operator, ast.Constant(1))
            found.append(("off by one", new))
    if name in LOOKUPS and node.args and isinstance(node.args[0], ast.Tuple):
        for operator, key in _without(node.args[0]):
            new = copy.deepcopy(node)
            new.args[0] = key
            found.append((operator, new))
    return found


def _swapped(node: Any) -> list[tuple[str, Any]]:
    """The first two, and where there are more the last two, in the other order."""
    field = "args" if isinstance(node, ast.Call) else "elts"
    count = len(getattr(node, field))
    found = []
    for k in {0, count - 2} if count >= 2 else ():
        new = copy.deepcopy(node)
        items = getattr(new, field)
        if sum(isinstance(item, ast.Constant) for item in items[k : k + 2]) == 1 and field == "args":
            continue  # a number and what is computed are seldom of one type: Python itself would refuse it
        items[k], items[k + 1] = items[k + 1], items[k]
        found.append(("swapped arguments" if field == "args" else "swapped parts", new))
    return found


def _without(node: Any) -> list[tuple[str, Any]]:
    found = []
    for k in range(len(node.elts)):
        new = copy.deepcopy(node)
        del new.elts[k]
        found.append(("dropped key part", new))
    return found


def _is_key(parent: ast.AST, field: str, names: re.Pattern[str] = KEYS) -> bool:
    """Whether what stands here is looked up in a cache."""
    match parent:
        case ast.Assign(targets=[ast.Name(id=name), *_]) | ast.AugAssign(target=ast.Name(id=name)):
            return names.search(name) is not None
        case ast.NamedExpr(target=ast.Name(id=name)):
            return names.search(name) is not None
        case ast.AnnAssign(target=ast.Name(id=name)):
            return names.search(name) is not None
    return False


def _slice(node: ast.Slice) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for side, operator in (("lower", ast.Add()), ("upper", ast.Sub())):
        bound = getattr(node, side)
        if bound is None or isinstance(bound, ast.Constant):  # constants are changed by themselves
            continue
        new = copy.deepcopy(node)
        setattr(new, side, ast.BinOp(getattr(new, side), operator, ast.Constant(1)))
        found.append(("off by one", new))
    return found


def _statement(node: ast.stmt, where: _Where) -> list[tuple[str, Any]]:
    match node:
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]) | ast.Expr(value=ast.Call()) | ast.Raise():
            return [("deleted", ast.Pass())]
        case ast.AugAssign(target=target, op=operator, value=value):
            found: list[tuple[str, Any]] = [("deleted", ast.Pass())]
            if not isinstance(value, ast.Tuple | ast.List | ast.JoinedStr | ast.ListComp | ast.Starred):
                found.append(("arithmetic", ast.AugAssign(target, ARITHMETIC[type(operator)](), value)))
            return found
        case ast.Return(value=value) if value is not None and not isinstance(value, ast.Constant):
            nothing = ("returned nothing", ast.Return(ast.Constant(None)))
            if isinstance(value, ast.Tuple) and len(value.elts) > 1 and not isinstance(value.elts[0], ast.Starred):
                return [nothing, ("returned the first", ast.Return(copy.deepcopy(value.elts[0])))]
            return [nothing]
        case ast.Continue():
            return [("left the loop", ast.Break())]
        case ast.Break():
            return [("went on", ast.Continue())]
    return []
