"""What kinds of values the variables and procedures of a unit have: a flow analysis over its procedures, to a fixpoint.

Comes in: the simplified forms of a unit, their `Analysis`, and the cells of the unit that nobody outside reads. Goes
out: `Inference`, which tells the kind of a variable, of what an expression gives, and of the operands of arithmetic.

A procedure is closed if all its calls are known: its value is needed by nobody. The parameters of such a procedure have
the kinds that its calls give them, all others any kind. Tests tell more: in (if (< i n) a b), i lies below n in a.
Nothing assigns the variables that are followed, so what was found out about one stays true, in closures too. Ranges
that keep growing are widened to numbers that stand in the program, then to `FAR`, then to all fixnums.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Set
from typing import Any, ClassVar

from eshkol.codegen.arithmetic import COMPARISONS
from eshkol.codegen.functions import Analysis, LambdaFunction
from eshkol.codegen.kinds import FAR, LEAST, MOST, NOTHING, OPPOSITE, TURNED, Kind, Kinds
from eshkol.codegen.nodes import Escape, Fix, LetValues, Prim, children
from eshkol.codegen.primitives import TAGS_OF_PREDICATES, PrimitiveTable
from eshkol.codegen.simplify import first_of_two
from eshkol.lang import core
from eshkol.lang.copying import MACHINE
from eshkol.lang.core import Call, Cell, Clause, Const, Global, If, Lambda, Let, Local, Node, Seq, Variable

ARITHMETIC = frozenset({"+", "-", "*", "/", "quotient", "remainder", "modulo"})
EXACTLY = 4  # changes of a range before it is widened
MANY = 200  # procedures of a large unit
COARSELY = 24  # and before it is all fixnums
NEAR = 1 << 60  # what is nearer to `FAR` may get beyond

Known = dict[Variable, Kind]  # what tests have told, beside what is known anywhere
Where = LambdaFunction | Node  # what is looked at as a whole: the code of a function, or a form of the top level
Found = tuple[Known | None, Known | None]  # what is known where a test holds, and where not; None: nothing comes there


class Inference:
    """Kinds of variables, results and expressions."""

    def __init__(self, forms: list[Node], analysis: Analysis, table: PrimitiveTable, private: Set[Cell]) -> None:
        self.kinds = Kinds(table.tags)
        self.table, self.analysis = table, analysis
        self.private = {(cell.library, cell.name) for cell in private}
        self.variables: dict[Variable, Kind] = {}
        self.cells: dict[Cell, Kind] = {}
        self.results: dict[LambdaFunction, Kind] = {}
        self.values: dict[Node, Kind] = {}  # of expressions of which something is known
        self.operands: dict[Prim, list[Kind]] = {}  # of arithmetic and comparisons
        self.shorter: dict[Call, Cell] = {}  # calls that may as well go to the procedure that theirs hands them on to
        self.givers: dict[Variable, Node] = {}  # of parameters with many kinds: an argument that has many itself
        self._any = self.kinds.any
        self._changes: Counter[Any] = Counter()
        self._readers: dict[Any, dict[Where, None]] = defaultdict(dict)
        self._around: dict[LambdaFunction, Known] = {}  # what tests told where a function was made
        self._waiting: dict[Where, None] = {}
        self._reached: dict[Where, None] = {}
        self._recording = False
        self._handing: dict[LambdaFunction, tuple[Cell, dict[int, int]] | None] = {}
        self._predicates = {
            name: sum(self.kinds.bit[tag] for tag in tags) for name, tags in TAGS_OF_PREDICATES.items()
        }  # fmt: skip
        self._is_typed = any(cell.name.endswith(MACHINE) for cell in private)
        self._exactly = EXACTLY if len(analysis.functions) < MANY else 1  # long chains of procedures take their time
        self._telling = self.kinds.telling()
        self._defined = Counter(form.cell for form in forms if type(form) is core.DefineGlobal)
        self._limits = sorted({LEAST, -FAR, -1, 0, 1, FAR, MOST, *_numbers(forms)})
        self._settle(forms)

    # ---- what is asked ------------------------------------------------------------------------------------------

    def is_closed(self, function: LambdaFunction) -> bool:
        """Whether all calls of a function are known."""
        if function.valued:
            return False
        return function.cell is None or (function.cell.library, function.cell.name) in self.private

    def kind(self, variable: Variable) -> Kind:
        """What is known of a variable wherever it is used."""
        found = self.variables.get(variable)
        return self._any if found is None or not found.tags or variable.assigned else found

    def tag(self, variable: Variable) -> str | None:
        """The one tag that a variable's values have."""
        return self.kinds.single(self.kind(variable))

    def is_instruction(self, node: Prim) -> bool:
        """Whether arithmetic on what is known of its operands takes an instruction or two, and no test."""
        known, kinds = self.operands.get(node), self.kinds
        if not known or len(known) < 2:
            return False
        machine = (kinds.fixnum, kinds.flonum)
        found = known[0]
        for kind in known[1:]:
            if found.tags not in machine or kind.tags not in machine:
                return False
            if node.name in COMPARISONS:
                return found.tags == kind.tags
            found = kinds.arithmetic(node.name, found, kind)
        return found.tags in machine

    # ---- the fixpoint -------------------------------------------------------------------------------------------

    def _settle(self, forms: list[Node]) -> None:
        self._waiting = dict.fromkeys(forms)
        while self._waiting:
            where = next(iter(self._waiting))
            del self._waiting[where]
            self._look(where)
        self._recording = True
        for where in list(self._reached):
            self._look(where)
        self._readers.clear()

    def _look(self, where: Where) -> None:
        self._where = where
        self._reached[where] = None
        if not isinstance(where, LambdaFunction):
            self.walk(where, {})
            return
        known, result = self._around.get(where, {}), NOTHING
        for clause in where.code.clauses:
            if all(self._read(v).tags for v in clause.params):
                result = self.kinds.join(result, self.walk(clause.body, known))
        self._grow(self.results, where, result)

    def _grow(self, table: dict[Any, Kind], key: Any, kind: Kind) -> None:
        """One more kind that something may have."""
        if self._recording:
            return
        before = table.get(key, NOTHING)
        after = self.kinds.join(before, kind)
        if after == before:
            return
        if before.tags & self.kinds.fixnum and (after.low, after.high) != (before.low, before.high):
            self._changes[key] += 1
            after = self._widened(before, after, self._changes[key])
        table[key] = after
        self._waiting.update(self._readers[key])

    def _widened(self, before: Kind, after: Kind, changes: int) -> Kind:
        if changes <= self._exactly:
            return after
        low, high = after.low, after.high
        limits = self._limits if changes <= COARSELY else [LEAST, MOST]
        if low < before.low:
            low = limits[bisect_right(limits, low) - 1]
            low = LEAST if low == -FAR and after.low < NEAR - FAR else low
        if high > before.high:
            high = limits[bisect_left(limits, high)]
            high = MOST if high == FAR and after.high > FAR - NEAR else high
        return Kind(after.tags, low, high)

    def _is_followed(self, variable: Variable) -> bool:
        """Whether a variable has one value, which is no known procedure."""
        return not variable.assigned and variable not in self.analysis.variables

    def _read(self, variable: Variable) -> Kind:
        if variable.assigned:
            return self._any
        if not self._recording:
            self._readers[variable][self._where] = None
        return self.variables.get(variable, NOTHING)

    def _open(self, function: LambdaFunction, known: Known) -> None:
        """A function is made here, with what is known; whoever calls it may give it anything, unless it is closed."""
        if self._recording:
            return
        if not self.is_closed(function):
            for clause in function.code.clauses:
                for variable in clause.params:
                    self.variables[variable] = self._any
        for clause in function.code.clauses:
            if clause.rest is not None:
                self.variables[clause.rest] = self.kinds.list
        before = self._around.get(function)
        if before is None:
            self._around[function] = known
        elif before != known:
            known = self._either(before, known) or {}
            if known == before:
                return
            self._around[function] = known
        else:
            return
        self._waiting[function] = None

    # ---- expressions --------------------------------------------------------------------------------------------

    def walk(self, node: Node, known: Known) -> Kind:
        """What an expression gives."""
        found = self._RULES[type(node)](self, node, known)
        if self._recording:
            self._record(node, found)
        return found

    def _record(self, node: Node, kind: Kind) -> None:
        """What an expression gives; one that stands in several places, as variables may, gives all of it."""
        before = self.values.get(node)
        self.values[node] = kind if before is None else self.kinds.join(before, kind)

    def _const(self, node: Const, known: Known) -> Kind:
        return self.kinds.constant(node.datum)

    def _unknown(self, node: Node, known: Known) -> Kind:
        return self._any

    def _local(self, node: Local, known: Known) -> Kind:
        variable = node.variable
        if variable in self.analysis.variables:
            return self.kinds.procedure
        told = known.get(variable)
        return self._read(variable) if told is None else told

    def _global(self, node: Global, known: Known) -> Kind:
        cell = node.cell
        if cell in self.analysis.cells:
            return self.kinds.procedure
        if not cell.sealed or cell.assigned or self._defined[cell] != 1:
            return self._any
        if not self._recording:
            self._readers[cell][self._where] = None
        return self.cells.get(cell, NOTHING)

    def _lambda(self, node: Lambda, known: Known) -> Kind:
        self._open(self.analysis.functions[node], known)
        return self.kinds.procedure

    def _set(self, node: Any, known: Known) -> Kind:
        found = self.walk(node.value, known)
        if isinstance(node, core.DefineGlobal):
            self._grow(self.cells, node.cell, found)
        return self.kinds.special

    def _if(self, node: If, known: Known) -> Kind:
        yes, no = self._decide(node.test, known)
        one = NOTHING if yes is None else self.walk(node.then, yes)
        return one if no is None else self.kinds.join(one, self.walk(node.otherwise, no))

    def _seq(self, node: Seq, known: Known) -> Kind:
        return self.walk(node.items[-1], self._done(node.items[:-1], known))

    def _done(self, nodes: Iterable[Node], known: Known) -> Known:
        """What is known when expressions have been computed, one after the other."""
        for node in nodes:
            self.walk(node, known)
            known = self._told(node, known)
        return known

    def _told(self, node: Node, known: Known) -> Known:
        """What is known when an expression has a value: of what an index was, that it lies in a vector."""
        while isinstance(node, Let | Seq):
            node = (node.values if isinstance(node, Let) else node.items)[0]
        if not isinstance(node, Prim):
            return known
        for arg in node.args:
            if isinstance(arg, Prim):
                known = self._told(arg, known)
        told = self._telling.get(node.name)
        for arg, kind in zip(node.args, told or (), strict=False):
            if isinstance(arg, Local) and self._is_followed(arg.variable):
                before = known.get(arg.variable) or self._read(arg.variable)
                after = self.kinds.within(self.kinds.with_tags(before, kind.tags), kind.low, kind.high)
                if after != before and after.tags:
                    known = {**known, arg.variable: after}
        return known

    def _bind(self, variable: Variable, kind: Kind) -> None:
        if not variable.assigned:
            self._grow(self.variables, variable, kind)

    def _let(self, node: Let, known: Known) -> Kind:
        return self.walk(node.body, self._let_bound(node, known))

    def _let_bound(self, node: Let, known: Known) -> Known:
        inner = known
        for variable, value in zip(node.variables, node.values, strict=True):
            self._bind(variable, self.walk(value, known))
            inner = self._told(value, inner)
        return inner

    def _let_values(self, node: LetValues, known: Known) -> Kind:
        self._bind_values(node, known)
        return self.walk(node.body, known)

    def _bind_values(self, node: LetValues, known: Known) -> None:
        value = node.value
        match value:
            case Prim(name="values", args=args) if node.rest is None and len(args) == len(node.variables):
                for variable, arg in zip(node.variables, args, strict=True):
                    self._bind(variable, self.walk(arg, known))
                return
        self.walk(value, known)
        for variable in node.variables:
            self._bind(variable, self._any)
        if node.rest is not None:
            self._bind(node.rest, self.kinds.list)

    def _fix(self, node: Fix, known: Known) -> Kind:
        for code in node.lambdas:
            self._open(self.analysis.functions[code], known)
        return self.walk(node.body, known)

    def _escape(self, node: Escape, known: Known) -> Kind:
        self.walk(node.body, known)
        return self._any

    def _call(self, node: Call, known: Known) -> Kind:
        function = self.analysis.known(node.procedure)
        clause = None if function is None else function.clause(len(node.args))
        args = [self.walk(arg, known) for arg in node.args]
        if self._is_typed and function is not None and function.cell is not None and clause is not None:
            target = self._target(function, args)
            if target is not None:
                if self._recording:
                    self.shorter[node] = target
                function = self.analysis.cells[target]
                clause = function.clause(len(args))
        if function is None or clause is None:
            self.walk(node.procedure, known)
            return self._any
        for kind in args:
            if not kind.tags:
                return NOTHING  # one of them never has a value, as far as is known yet
        if self._recording:
            self._note_givers(function, clause, node.args, args)
            return self.results.get(function, NOTHING)
        if self.is_closed(function):
            for variable, kind in zip(clause.params, args, strict=False):
                if not variable.assigned:
                    self._grow(self.variables, variable, kind)
        self._readers[function][self._where] = None
        if function not in self._reached:
            self._waiting[function] = None
        return self.results.get(function, NOTHING)

    def _note_givers(self, function: LambdaFunction, clause: Clause, given: list[Node], kinds: list[Kind]) -> None:
        for variable, kind, arg in zip(clause.params, kinds, given, strict=False):
            if self.kinds.single(kind) is not None:
                continue
            if self._where is function:  # a loop gives on what others gave it
                self.givers.setdefault(variable, arg)
            else:
                self.givers[variable] = arg

    def _target(self, function: LambdaFunction, args: list[Kind]) -> Cell | None:
        """The procedure that one hands on its arguments to, if they are of the kinds that it asks for (borders.py)."""
        if function not in self._handing:
            self._handing[function] = self._hands_on(function)
        found = self._handing[function]
        if found is None or any(args[i].tags & ~tags or not args[i].tags for i, tags in found[1].items()):
            return None
        return found[0]

    def _hands_on(self, function: LambdaFunction) -> tuple[Cell, dict[int, int]] | None:
        """Where to, and the tags that it asks of which parameters."""
        if len(function.code.clauses) != 1 or function.code.clauses[0].rest is not None:
            return None
        clause = function.code.clauses[0]
        match clause.body:
            case If(test=test, then=Call(procedure=Global(cell=cell), args=args)) if cell in self.analysis.cells:
                same = [
                    isinstance(arg, Local) and arg.variable is p for arg, p in zip(args, clause.params, strict=False)
                ]
                asked: dict[int, int] = {}
                while isinstance(test, If) and isinstance(test.otherwise, Const) and test.otherwise.datum is False:
                    if not self._asks(test.test, clause.params, asked):
                        return None
                    test = test.then
                fits = len(args) == len(clause.params) and all(same) and self._asks(test, clause.params, asked)
                return (cell, asked) if fits else None
        return None

    def _asks(self, test: Node, params: list[Variable], asked: dict[int, int]) -> bool:
        match test:
            case Prim(name="%fixnum?" | "%flonum?" as name, args=[Local(variable=variable)]) if variable in params:
                asked[params.index(variable)] = self._predicates[name]
                return True
        return False

    def _prim(self, node: Prim, known: Known) -> Kind:
        args = [self.walk(arg, known) for arg in node.args]
        return self._computed(node, args)

    def _computed(self, node: Prim, args: list[Kind]) -> Kind:
        name = node.name
        if self._recording and (name in ARITHMETIC or name in COMPARISONS):
            before = self.operands.get(node)
            self.operands[node] = args if before is None else list(map(self.kinds.join, before, args))
        if name in ARITHMETIC:
            return self.kinds.operator(name, args)
        if name in COMPARISONS:
            if any(not kind.tags for kind in args):
                return NOTHING
            return self.kinds.compared(args[0], args[1]) if len(args) == 2 else self._any
        if name == "%results":
            return args[0]
        return self.kinds.primitive(name, args, self.table.test(name, len(args)) is not None)

    # ---- tests --------------------------------------------------------------------------------------------------

    def _decide(self, node: Node, known: Known) -> Found:
        """What is known where a test holds, and where it does not."""
        match node:
            case Const(datum=found):
                return (None, known) if found is False else (known, None)
            case Local(variable=variable):
                kind = self.walk(node, known)
                return self._parted(variable, kind, known, kind.tags, self.kinds.boolean_tag)
            case If(test=test, then=then, otherwise=otherwise):
                yes, no = self._decide(test, known)
                one = (None, None) if yes is None else self._decide(then, yes)
                other = (None, None) if no is None else self._decide(otherwise, no)
                return self._either(one[0], other[0]), self._either(one[1], other[1])
            case Seq(items=items):
                return self._decide(items[-1], self._done(items[:-1], known))
            case Let() if (both := first_of_two(node)) is not None:
                first = both[0]  # what is asked is looked at once
                asked = isinstance(first, If | Let | Seq)
                self._bind(node.variables[0], self._any if asked else self.walk(first, known))
                yes, no = self._decide(first, known)
                if no is None:
                    return yes, None
                second = self._decide(both[1], no)
                return self._either(yes, second[0]), second[1]
            case Let(body=body):
                return self._decide(body, self._let_bound(node, known))
            case Prim(name="not", args=[arg]):
                yes, no = self._decide(arg, known)
                return no, yes
            case Prim():
                return self._asked(node, known)
        kind = self.walk(node, known)
        if not kind.tags:
            return None, None
        return known, known if kind.tags & self.kinds.boolean_tag else None

    def _asked(self, node: Prim, known: Known) -> Found:
        """What a primitive tells of its arguments."""
        args = [self.walk(arg, known) for arg in node.args]
        kind = self._computed(node, args)
        if self._recording:
            self._record(node, kind)
        if not kind.tags:
            return None, None
        known = self._told(node, known)
        match node:
            case Prim(name=name, args=[Local(variable=variable)]) if name in self._predicates:
                tags = self._predicates[name]
                return self._parted(variable, args[0], known, tags, ~tags)
            case Prim(name="zero?", args=[Local() as asked]):
                return self._related("=", [asked, Const(None, 0)], [args[0], self.kinds.constant(0)], known)
            case Prim(name=name, args=[_, _]) if name in COMPARISONS:
                return self._related(name, node.args, args, known)
        return known, known if kind.tags & self.kinds.boolean_tag else None

    def _parted(self, variable: Variable, kind: Kind, known: Known, yes: int, no: int) -> Found:
        """Where a variable has one of some tags, and where one of others."""
        if not self._is_followed(variable):
            return known, known
        found: list[Known | None] = []
        for tags in (yes, no):
            left = self.kinds.with_tags(kind, tags)
            found.append(None if not left.tags else known if left == kind else {**known, variable: left})
        return found[0], found[1]

    def _related(self, relation: str, nodes: list[Node], args: list[Kind], known: Known) -> Found:
        """What a comparison tells of variables."""
        found: list[Known | None] = []
        for holds in (relation, OPPOSITE[relation]):
            here: Known | None = known
            for node, kind, other, how in (
                (nodes[0], args[0], args[1], holds), (nodes[1], args[1], args[0], TURNED[holds]),
            ):  # fmt: skip
                if (
                    isinstance(node, Local)
                    and not node.variable.assigned
                    and node.variable not in self.analysis.variables
                ):
                    left = self.kinds.ordered(how, kind, other)
                    if not left.tags:
                        here = None
                        break
                    if left != kind and here is not None:
                        here = {**here, node.variable: left}
            found.append(here)
        return found[0], found[1]

    def _either(self, one: Known | None, other: Known | None) -> Known | None:
        """What is known where two ways meet."""
        if one is None or one is other:
            return other
        if other is None:
            return one
        return {v: self.kinds.join(kind, other[v]) for v, kind in one.items() if v in other}

    _RULES: ClassVar[dict[type, Callable[..., Kind]]] = {
        Const: _const, core.SyntaxConst: _unknown, Local: _local, Global: _global, core.SetLocal: _set,
        core.SetGlobal: _set, core.DefineGlobal: _set, If: _if, Seq: _seq, Lambda: _lambda, Let: _let, Fix: _fix,
        LetValues: _let_values, Escape: _escape, Call: _call, Prim: _prim,
    }  # fmt: skip


def _numbers(forms: Iterable[Node]) -> set[int]:
    """The whole numbers that stand in forms, and their neighbours."""
    found: set[int] = set()
    stack = list(forms)
    while stack:
        node = stack.pop()
        if type(node) is Const:
            if type(node.datum) is int and LEAST < node.datum < MOST:
                found.update((node.datum - 1, node.datum, node.datum + 1))
        else:
            stack.extend(children(node))
    return found
