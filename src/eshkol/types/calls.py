"""Calls: which way of a procedure the arguments take, and what it gives then.

Comes in: calls as core forms, of checkers (`checking.py`). Goes out: types of results; errors about numbers of
arguments and about arguments that do not fit. A polymorphic procedure's variables are what its arguments make of them:
first those that have types of their own, then procedures that are written in place, whose parameters are known by then.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from eshkol.errors import BadType, LanguageError
from eshkol.lang.core import Call, Cell, Clause, Const, Global, Lambda, Local, Node, Variable
from eshkol.lang.report import bad
from eshkol.lang.source import Place
from eshkol.types import numbers
from eshkol.types.fitting import fits, proven, resized, sizes_in, solved, substituted, without_proofs
from eshkol.types.kinds import (
    ANY,
    BOOLEAN,
    HANDLES,
    NEVER,
    NUMBERS,
    REALS,
    RECORD,
    SOME_PROCEDURE,
    SOME_TENSOR,
    SOME_VECTOR,
    TENSOR,
    Arrow,
    Function,
    HandleOf,
    ListOf,
    PairOf,
    ProofOf,
    TensorOf,
    Type,
    TypeVariable,
    ValuesOf,
    VectorOf,
    can_meet,
    cover,
    join,
    join_all,
    list_of,
    opened,
    vector_of,
)
from eshkol.types.proofs import cast_type, proof_type
from eshkol.types.proving import Proving
from eshkol.types.sizes import UNKNOWN, Size, names_in
from eshkol.types.standard import is_standard
from eshkol.types.wording import Expected, arity, counted, kind_name

AGAIN = Type(0)  # what a loop gives that is being looked at: nothing, unless it comes back
_PLAIN = frozenset({Const, Local, Global, Call})  # forms whose type does not depend on what is expected of them
_QUANTITY = Type(NUMBERS | TENSOR)
_LIST = list_of(ANY)
MOST_MATCHED = 64  # levels of pairs in an argument that are looked at for type variables
ROWS = "(eshkol tensors"  # how the names of the libraries begin that have the rows of the op table
_REAL_QUANTITY = Type(REALS | TENSOR)


class Calls(ABC):
    """The part of a checker that looks at calls."""

    shapes: Callable[[], Any] | None
    strict: bool
    kinds: dict[Variable, Type]
    values: dict[Cell, Node]
    clauses: dict[Variable, Clause]
    records: dict[Cell, Type]
    called_so: set[int]
    checks: dict[int, Any]
    errors: list[LanguageError]
    _loops: dict[Variable, list[Type]]
    _gives: dict[Variable, Type]
    entries: dict[int, list[Type]]
    _missing: bool
    _counts: dict[tuple[Cell, int], bool]
    proving: Proving
    _bare: dict[int, tuple[Arrow, Type]]  # by the identity of ways: results where nothing is known of arguments
    _arrows: dict[int, tuple[Type, list[Arrow]]]  # by the identity of types, which are kept with them

    @abstractmethod
    def synth(self, node: Node) -> Type: ...
    @abstractmethod
    def check_node(self, node: Node, expected: Expected) -> Type: ...
    @abstractmethod
    def require(self, node: Node, found: Type, expected: Expected) -> Type: ...
    @abstractmethod
    def refuse(self, error: LanguageError, declared: bool) -> None: ...
    @abstractmethod
    def used(self, found: Type) -> Type: ...
    @abstractmethod
    def bind(self, variable: Variable, value: Node) -> None: ...
    @abstractmethod
    def declared(self, variable: Variable) -> Type | None: ...
    @abstractmethod
    def cell_type(self, cell: Cell) -> Type: ...
    @abstractmethod
    def _call_loop(self, node: Call, loop: Variable) -> Type: ...
    @abstractmethod
    def _lambda(self, node: Lambda, wanted: Function | None = None, by: Expected | None = None) -> Type: ...

    # ---- one call ----------------------------------------------------------------------------------------------------

    def _call_node(self, node: Call) -> Type:
        callee, args = node.procedure, node.args
        kind = type(callee)
        if kind is Global:
            return self._call_global(node, callee.cell)  # type: ignore[attr-defined]
        if kind is Local:
            variable = callee.variable  # type: ignore[attr-defined]
            if variable in self._loops:
                return self._call_loop(node, variable)
            return self._apply(node, self.synth(callee), variable.name, variable.place, self.clauses.get(variable))
        if kind is Lambda:
            return self._call_lambda(node, callee)  # type: ignore[arg-type]
        found = self.used(self.synth(callee))
        if found is ANY:
            self._all(args)
            return ANY
        return self._apply(node, found, "what is called", callee.place, None)

    def _all(self, args: Sequence[Node]) -> list[Type]:
        return [self.used(self.synth(arg)) for arg in args]

    def _call_global(self, node: Call, cell: Cell) -> Type:
        if is_standard(cell):
            name = cell.name
            if name in numbers.RULES or name in numbers.COMPARISONS:
                return self._arithmetic(node, name)
            special = _SPECIAL.get(name)
            if special is not None:
                found = special(self, node)
                if found is not None:
                    return found
            if cell.library.startswith(ROWS):
                return self._tensor_row(node, cell)
            return self._apply(node, self.cell_type(cell), name, None, None)
        value = self.values.get(cell)
        clause = value.clauses[0] if type(value) is Lambda and len(value.clauses) == 1 else None
        return self._apply(node, self.cell_type(cell), cell.name, cell.place, clause)

    def _call_lambda(self, node: Call, callee: Lambda) -> Type:
        clause = next((c for c in callee.clauses if len(c.params) == len(node.args) and c.rest is None), None)
        if clause is None or len(callee.clauses) > 1 or clause.returns is not None:
            found = self.synth(callee)
            return self._apply(node, found, "the procedure", callee.place, None)
        for variable, value in zip(clause.params, node.args, strict=True):
            self.bind(variable, value)
        return self.synth(clause.body)

    # ---- the ways of a procedure -------------------------------------------------------------------------------------

    def _apply(self, node: Call, kind: Type, name: str, place: Place | None, clause: Clause | None) -> Type:
        args = node.args
        if kind is ANY:
            self._all(args)
            return ANY
        arrows = self._ways_of(kind)
        if not arrows:
            self._all(args)
            if not can_meet(kind, SOME_PROCEDURE):
                self.refuse(
                    bad(
                        f"{name} is called here, but it is {kind_name(kind)}",
                        node.place,
                        "what stands first in parentheses is called; without parentheses around it, it is a value",
                        kind=BadType,
                    ),
                    False,
                )
            return ANY
        taking = [arrow for arrow in arrows if arrow.takes(len(args))]
        if not taking:
            self._all(args)
            self.refuse(arity(name, _ways(arrows), len(args), node, place), False)
            return join_all(arrow.result for arrow in arrows)
        if len(taking) == 1:
            return self._one_way(node, taking[0], name, place, clause, {})
        return self._first_way(node, taking, name, place, clause)

    def _ways_of(self, kind: Type) -> list[Arrow]:
        """The ways to call a procedure, if a type says all of them."""
        found = self._arrows.get(id(kind))
        if found is None:
            parts = opened(kind)
            arrows = [arrow for part in parts.parts if type(part) is Function for arrow in part.arrows]
            found = self._arrows[id(kind)] = (kind, [] if kind.mask else arrows)
        return found[1]

    def _first_way(
        self, node: Call, taking: list[Arrow], name: str, place: Place | None, clause: Clause | None
    ) -> Type:
        """The first way that the arguments fit for certain; else the last that they may fit."""
        known = {id(arg): self.used(self.synth(arg)) for arg in node.args if type(arg) is not Lambda}
        possible: list[Arrow] = []
        for arrow in taking:
            pairs = [(known.get(id(arg)), arrow.param(i)) for i, arg in enumerate(node.args)]
            bare = dict.fromkeys(arrow.variables, ANY)
            sure = [(k, substituted(p, bare)) for k, p in pairs if k is not None]
            if all(proven(k, p) or (k is not ANY and fits(k, p) and not cover(k) & ~cover(p)) for k, p in sure):
                if not possible:
                    return self._one_way(node, arrow, name, place, clause, known)
                break
            if all(fits(k, p) if self.strict else can_meet(k, p) for k, p in sure):
                possible.append(arrow)
        if not possible:
            return self._one_way(node, taking[0], name, place, clause, known)
        if len(possible) == 1 and taking[-1] is possible[0]:
            return self._one_way(node, possible[0], name, place, clause, known)
        for arg in node.args:
            if id(arg) not in known:
                self.synth(arg)
        return ANY

    def _one_way(
        self, node: Call, arrow: Arrow, name: str, place: Place | None, clause: Clause | None, known: dict[int, Type]
    ) -> Type:
        """The result of a call that takes this way, with its arguments looked at."""
        args = node.args
        declared = place is not None and _is_declared(arrow)
        if not declared and not arrow.where and all(type(arg) in _PLAIN for arg in args):
            found = self._of_nothing(arrow, args, known)
            if found is not None:
                return found
        sizes = self._sizes(arrow, args, known) if place is not None else {}
        chosen: dict[TypeVariable, Type] = {}
        if arrow.variables:
            chosen = dict.fromkeys(arrow.variables, NEVER)
            late = []
            for index, arg in enumerate(args):
                if type(arg) is Lambda and type(_only(arrow.param(index))) is Function:
                    late.append((index, arg))
                    continue
                kind = known.get(id(arg))
                if kind is None:
                    kind = known[id(arg)] = self.used(self.synth(arg))
                _match(arrow.param(index), kind, chosen)
            for index, arg in late:
                settled = {v: k if k != NEVER else ANY for v, k in chosen.items()}
                wanted = _only(substituted(arrow.param(index), settled))
                errors = len(self.errors)
                kind = known[id(arg)] = self._lambda(arg, wanted if type(wanted) is Function else None)
                if len(self.errors) == errors:
                    _match_result(arrow.param(index), kind, chosen)
            chosen = {v: k if k != NEVER else ANY for v, k in chosen.items()}
        all_proven = True
        for index, arg in enumerate(args):
            kind = known.get(id(arg))
            if kind is None and type(arg) in _PLAIN:
                kind = known[id(arg)] = self.synth(arg)
            if kind is ANY and not declared:
                self.checks.pop(id(arg), None)
                continue
            param = substituted(arrow.param(index), chosen) if chosen else arrow.param(index)
            param = resized(param, sizes)
            if (
                kind is not None
                and kind is not AGAIN
                and (kind is param or proven(kind, param) or _proofs(kind, param))
            ):
                self.checks.pop(id(arg), None)
                continue
            expected = self._argument(name, param, index, len(args), place, clause, declared)
            found = self.check_node(arg, expected) if kind is None else self.require(arg, kind, expected)
            found = self.used(found)
            all_proven = all_proven and (param is ANY or proven(found, param) or id(arg) in self.checks)
        if arrow.where:
            all_proven = self.proving.asked(node, arrow, sizes, name) and all_proven
        if declared and all_proven:
            self.called_so.add(id(node))
            if self.proving.certain is not None and clause is not None:
                self.proving.certain.called(node, clause, arrow.params, self.proving.where(clause))
        else:
            self.called_so.discard(id(node))
        return without_proofs(resized(substituted(arrow.result, chosen) if chosen else arrow.result, sizes))

    def _of_nothing(self, arrow: Arrow, args: Sequence[Node], known: dict[int, Type]) -> Type | None:
        """The result of a call of which nothing is known but its arguments' number, and no one says more: the usual
        one in programs without types. Else the arguments' types are known afterwards."""
        nothing = True
        for arg in args:
            kind = known.get(id(arg))
            if kind is None:
                kind = known[id(arg)] = self.synth(arg)
            nothing = nothing and kind is ANY
        if not nothing:
            return None
        if self.checks:
            for arg in args:
                self.checks.pop(id(arg), None)
        found = self._bare.get(id(arrow))
        if found is None:
            sizes: dict[str, Size] = dict.fromkeys(_size_names(arrow), UNKNOWN)
            bare = substituted(arrow.result, dict.fromkeys(arrow.variables, ANY))
            found = self._bare[id(arrow)] = (arrow, without_proofs(resized(bare, sizes)))
        return found[1]

    def _sizes(self, arrow: Arrow, args: Sequence[Node], known: dict[int, Type]) -> dict[str, int | str]:
        """What a procedure's names for sizes are in this call, by the shapes of its arguments."""
        names = _size_names(arrow)
        if not names:
            return {}
        sizes: dict[str, int | str] = dict.fromkeys(names, UNKNOWN)
        for index, arg in enumerate(args):
            if type(arg) is not Lambda and sizes_in(arrow.param(index)):
                kind = known.get(id(arg))
                if kind is None:
                    kind = known[id(arg)] = self.used(self.synth(arg))
                solved(arrow.param(index), kind, sizes)
        return sizes

    def _argument(
        self, name: str, kind: Type, index: int, count: int, place: Place | None, clause: Clause | None, declared: bool
    ) -> Expected:
        """What is expected of an argument, in words."""
        param = clause.params[index] if clause is not None and index < len(clause.params) else None
        what = "" if count == 1 else f"as argument {index + 1}"
        if param is not None:
            what = f"as {param.name}"
        where = param.place if param is not None and declared else place if declared else None
        blamed = f"{name} takes {kind_name(kind)} {what}".rstrip() + ", but is given" if declared else ""
        return Expected(kind, f"{name} takes", what, where, declared, False, blamed)

    def _takes(self, cell: Cell, count: int) -> bool:
        """Whether a procedure of arithmetic takes so many arguments."""
        found = self._counts.get((cell, count))
        if found is None:
            arrows = [a for p in self.cell_type(cell).parts if type(p) is Function for a in p.arrows]
            found = self._counts[cell, count] = not arrows or any(arrow.takes(count) for arrow in arrows)
        return found

    # ---- arithmetic --------------------------------------------------------------------------------------------------

    def _arithmetic(self, node: Call, name: str) -> Type:
        kinds = self._all(node.args)
        cell = node.procedure.cell  # type: ignore[attr-defined]
        if not self._takes(cell, len(kinds)):
            arrows = [a for p in self.cell_type(cell).parts if type(p) is Function for a in p.arrows]
            self.refuse(arity(name, _ways(arrows), len(kinds), node, None), False)
            return NEVER
        if kinds and all(kind is ANY for kind in kinds):
            for arg in node.args:
                self.checks.pop(id(arg), None)
            return ANY
        wanted = _REAL_QUANTITY if name in numbers.OF_REALS else _QUANTITY
        masks = [kind.mask for kind in kinds]
        number = wanted.mask & ~TENSOR
        if all(mask and not mask & ~number and not kind.parts for mask, kind in zip(masks, kinds, strict=True)):
            for arg in node.args:
                self.checks.pop(id(arg), None)
            if name in numbers.COMPARISONS:
                return BOOLEAN
            found = numbers.result_of(name, masks)
            return ANY if found is None else Type(found)
        tensors = any(kind.mask & TENSOR or _has_shape(kind) for kind in kinds if kind is not ANY)
        if not tensors:
            wanted = Type(wanted.mask & ~TENSOR)
        fine = True
        for index, (arg, kind) in enumerate(zip(node.args, kinds, strict=True)):
            before = len(self.errors)
            what = f"as argument {index + 1}" if len(kinds) > 1 else ""
            self.require(arg, kind, Expected(wanted, f"{name} takes", what))
            fine = fine and len(self.errors) == before
        if not fine:
            return BOOLEAN if name in numbers.COMPARISONS else Type(NUMBERS)
        if any(kind is ANY for kind in kinds):
            return ANY
        if tensors:
            return self._of_tensors(node, name, kinds)
        if name in numbers.COMPARISONS:
            return BOOLEAN
        found = numbers.result_of(name, [kind.mask for kind in kinds])
        return ANY if found is None else Type(found)

    def _of_tensors(self, node: Call, name: str, kinds: list[Type]) -> Type:
        if self.shapes is None or not any(map(_has_shape, kinds)):
            return SOME_TENSOR
        found: Type | None = self.shapes().operator(name, kinds, node, self)
        return SOME_TENSOR if found is None else found

    def _tensor_row(self, node: Call, cell: Cell) -> Type:
        """A call of what may be a row of the op table; the type of its result where shapes are known."""
        kinds = self._all(node.args)
        if self.shapes is None or not any(map(_has_shape, kinds)) or not self.shapes().knows(cell):
            return ANY
        found: Type | None = self.shapes().call(cell.name, kinds, node, self)
        return ANY if found is None else found

    # ---- procedures that the checker knows itself --------------------------------------------------------------------

    def _record_made(self, node: Call) -> Type | None:
        kind = node.args[0]
        record = self.records.get(kind.cell) if type(kind) is Global else None
        self._all(node.args)
        return ANY if record is None else record

    def _vector(self, node: Call) -> Type:
        """(vector x ...) has as many elements as arguments."""
        item = join_all(self._all(node.args))
        return vector_of(item if node.args else ANY, len(node.args))

    def _vector_of_size(self, node: Call) -> Type | None:
        """(make-vector n x), of a size that is known."""
        term = self.proving.term(node.args[0]) if node.args else None
        if term is None or term.factors or len(node.args) != 2 or term.constant < 0:
            return None
        return vector_of(self._all(node.args)[1], term.constant)

    def _indexed(self, node: Call) -> Type | None:
        """(vector-ref v i) and (vector-set! v i x): the index may certainly be wrong; else they are as others."""
        if self.proving.certain is not None:
            self.proving.certain.access(node)
        if len(node.args) >= 2 and type(node.args[1]) in (Const, Local, Call):
            kind = self.synth(node.args[0]) if type(node.args[0]) in (Local, Global, Const) else ANY
            self.synth(node.args[1])
            name = node.procedure.cell.name  # type: ignore[attr-defined]
            if kind is not ANY and proven(kind, SOME_VECTOR):
                self.proving.index(node, node.args[0], kind, node.args[1], name)
        return None

    def _proof(self, node: Call) -> Type:
        return proof_type(self.proving, node)

    def _cast_shape(self, node: Call) -> Type:
        kind = self.used(self.synth(node.args[0]))
        return cast_type(self.proving, node, kind)

    def _region(self, node: Call) -> Type:
        """A region gives what its body gives."""
        return self._result_of(self._all(node.args)[-1])

    def _append(self, node: Call) -> Type:
        """Lists, the last of which may be anything, and is then their end."""
        kinds = self._all(node.args)
        for index, (arg, kind) in enumerate(zip(node.args[:-1], kinds, strict=False)):
            self.require(arg, kind, Expected(_LIST, "append takes", f"as argument {index + 1}"))
        if kinds and not proven(kinds[-1], _LIST):
            return ANY
        item = TypeVariable("item")
        chosen: dict[TypeVariable, Type] = {item: NEVER}
        for kind in kinds:
            _match(Type(0, (ListOf(Type(0, (item,))),)), kind, chosen)
        return list_of(chosen[item])

    def _values(self, node: Call) -> Type:
        kinds = self._all(node.args)
        return kinds[0] if len(kinds) == 1 else Type(0, (ValuesOf(tuple(kinds)),))

    def _call_with_values(self, node: Call) -> Type | None:
        """(call-with-values producer consumer), as let-values and receive are written."""
        if len(node.args) != 2 or type(node.args[0]) is not Lambda or type(node.args[1]) is not Lambda:
            return None
        producer, consumer = node.args
        made = self.synth(producer)
        given = _only(made)
        result = given.arrows[0].result if type(given) is Function else ANY
        part = _only(result)
        kinds = part.items if type(part) is ValuesOf else (result,)
        if result is ANY or (type(part) is not ValuesOf and any(type(p) is ValuesOf for p in result.parts)):
            return self._result_of(self._lambda(consumer))  # type: ignore[arg-type]
        arrow = Arrow(tuple(kinds), None, ANY)
        found = self._lambda(consumer, Function((arrow,)))  # type: ignore[arg-type]
        taking = _only(found)
        if type(taking) is Function and not any(a.takes(len(kinds)) for a in taking.arrows):
            ways = _ways(taking.arrows)
            given_here = "1 value comes" if len(kinds) == 1 else f"{len(kinds)} values come"
            self.refuse(bad(f"{given_here} here, where what takes them has {ways}", node.place, kind=BadType), False)
        return self._result_of(found)

    def _result_of(self, kind: Type) -> Type:
        part = _only(kind)
        return join_all(a.result for a in part.arrows) if type(part) is Function else ANY


def _has_shape(kind: Type) -> bool:
    return any(type(part) is TensorOf for part in kind.parts)


def _size_names(arrow: Arrow) -> set[str]:
    return {name for p in (*arrow.params, arrow.result) for dims in sizes_in(p) for s in dims for name in names_in(s)}


def _proofs(given: Type, param: Type) -> bool:
    """Whether a proof is given for a proof: whether it is of what is asked for is asked of all that is known."""
    return type(_only(given)) is type(_only(param)) is ProofOf


def _ways(arrows: Sequence[Arrow]) -> str:
    """How many arguments a procedure takes, over all its ways."""
    least = min(len(a.params) - a.optional for a in arrows)
    most = None if any(a.rest is not None for a in arrows) else max(len(a.params) for a in arrows)
    return counted(least, most)


def _only(kind: Type) -> Any:
    """The one part of a type; None of others."""
    return kind.parts[0] if len(kind.parts) == 1 and not kind.mask else None


def _is_declared(arrow: Arrow) -> bool:
    return any(p is not ANY for p in arrow.params) or (arrow.rest is not None and arrow.rest is not ANY)


def _match(param: Type, given: Type, chosen: dict[TypeVariable, Type], depth: int = 0) -> None:
    """Take in what an argument says of the variables in the type of its parameter."""
    given = opened(given) if depth < MOST_MATCHED else ANY
    for part in param.parts:
        match part:
            case TypeVariable() if part in chosen:
                chosen[part] = join(chosen[part], given)
            case ListOf(item):
                if given is ANY or given.mask & cover(Type(0, (part,))) & ~_NULL:
                    _match(item, ANY, chosen, depth + 1)
                for other in given.parts:
                    _match_list(item, part, other, chosen, depth + 1)
            case PairOf(first, rest):
                for other in given.parts:
                    if type(other) is PairOf:
                        _match(first, other.first, chosen, depth + 1)
                        _match(rest, other.rest, chosen, depth + 1)
                    elif type(other) is ListOf:
                        _match(first, other.item, chosen, depth + 1)
                        _match(rest, Type(0, (other,)), chosen, depth + 1)
                if given is ANY:
                    _match(first, ANY, chosen, depth + 1)
                    _match(rest, ANY, chosen, depth + 1)
            case VectorOf(item):
                for other in given.parts:
                    if type(other) is VectorOf:
                        _match(item, other.item, chosen, depth + 1)
                if given is ANY or given.mask & cover(Type(0, (part,))):
                    _match(item, ANY, chosen, depth + 1)
            case HandleOf(of_kind, item):
                for other in given.parts:
                    if type(other) is HandleOf and HANDLES[of_kind] == HANDLES[other.kind]:
                        _match(item, other.item, chosen, depth + 1)
                if given is ANY or given.mask & RECORD:
                    _match(item, ANY, chosen, depth + 1)
            case Function():
                _match_result(param, given, chosen)


_NULL = cover(Type(0, (ListOf(ANY),))) & ~cover(Type(0, (PairOf(ANY, ANY),)))


def _match_list(item: Type, part: ListOf, other: Any, chosen: dict[TypeVariable, Type], depth: int = 0) -> None:
    if type(other) is ListOf:
        _match(item, other.item, chosen, depth + 1)
    elif type(other) is PairOf:
        _match(item, other.first, chosen, depth + 1)
        _match(Type(0, (part,)), other.rest, chosen, depth + 1)


def _match_result(param: Type, given: Type, chosen: dict[TypeVariable, Type]) -> None:
    """What a procedure gives, for what its parameter expects it to give."""
    wanted, found = _only(param), _only(opened(given))
    if type(wanted) is not Function:
        return
    arrows = found.arrows if type(found) is Function else ()
    for arrow in wanted.arrows:
        taking = [a for a in arrows if a.takes(len(arrow.params))]
        if given is ANY or given.mask or not taking or taking[0].variables:
            _match(arrow.result, ANY, chosen)
        else:
            _match(arrow.result, taking[0].result, chosen)


_SPECIAL: dict[str, Callable[[Calls, Call], Type | None]] = {
    "vector": Calls._vector,
    "make-vector": Calls._vector_of_size,
    "vector-ref": Calls._indexed,
    "vector-set!": Calls._indexed,
    "%record": Calls._record_made,
    "%with-region": Calls._region,
    "%proof": Calls._proof,
    "%cast-shape": Calls._cast_shape,
    "append": Calls._append,
    "values": Calls._values,
    "call-with-values": Calls._call_with_values,
}
