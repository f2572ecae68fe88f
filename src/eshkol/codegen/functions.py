"""Which lambdas become what: loops and join points inside their function, plain functions, or closures.

Comes in: the simplified forms of a unit. Goes out: a `LambdaFunction` for each lambda, with what the emitter must know:

- inside: all its calls are tail calls that continue where its binding does, so it is a label in the function around it
  (loops are of this kind);
- otherwise a function of its own. If its value is never needed, only calls of it, its free variables are passed as
  further arguments; else it is a closure, static where nothing is captured.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from eshkol.codegen.nodes import Escape, Fix, LetValues, Prim, children
from eshkol.lang import core
from eshkol.lang.core import Call, Clause, Const, Global, If, Lambda, Let, Local, Node, Seq, SetLocal, Variable
from eshkol.lang.source import Place

EASY_SIZE = 24  # expressions in the beginning of a function that its callers may take over
PASSED = 8  # free variables that a function without a closure may take as arguments


@dataclass(eq=False)
class Region:
    """Code whose end is the end of another region, or of a function."""

    parent: Region | None = None

    def within(self, other: Region) -> bool:
        region: Region | None = self
        while region is not None:
            if region is other:
                return True
            region = region.parent
        return False


@dataclass(eq=False)
class FunctionGroup:
    """The functions of one Fix."""

    region: Region
    members: list[LambdaFunction] = field(default_factory=list)
    inside: bool = True  # until something speaks against it


@dataclass(eq=False)
class LambdaFunction:
    """A lambda, and what becomes of it."""

    code: Lambda
    number: int = 0  # in its unit
    variable: Variable | None = None
    group: FunctionGroup | None = None
    region: Region = field(default_factory=Region)
    escapes: bool = False  # whether its value is needed
    valued: bool = False  # whether it is used otherwise than in calls that are known, and its definition
    valued_at: Place | None = None  # where, first
    cell: core.Cell | None = None  # that it is defined as
    loops: bool = False  # whether it is called from inside itself or its group
    calls: list[tuple[Region | None, Clause | None]] = field(default_factory=list)
    bound: set[Variable] = field(default_factory=set)
    used: dict[Variable, None] = field(default_factory=dict)
    made: list[LambdaFunction] = field(default_factory=list)  # functions whose lambda stands in this one
    called: dict[LambdaFunction, None] = field(default_factory=dict)  # known functions called
    wanted: dict[LambdaFunction, None] = field(default_factory=dict)  # known functions whose values are used
    free: list[Variable] = field(default_factory=list)

    @property
    def inside(self) -> bool:
        return self.group is not None and self.group.inside

    def is_value(self, place: Place | None) -> None:
        """Its value is needed by something that may do anything with it."""
        self.valued_at = self.valued_at if self.valued else place
        self.escapes = self.valued = True

    @property
    def is_static(self) -> bool:
        """A closure that captures nothing."""
        return self.escapes and not self.free

    @property
    def ends_with_itself(self) -> bool:
        """Whether it calls itself as the last thing that it does."""
        return any(region is not None and region.within(self.region) for region, _ in self.calls)

    @property
    def is_plain(self) -> bool:
        """Whether it calls nothing but primitives: then it has no loops, either."""
        stack: list[Node] = [self.code]
        while stack:
            node = stack.pop()
            if isinstance(node, Call):
                return False
            stack.extend(children(node))
        return True

    def clause(self, count: int) -> Clause | None:
        """The clause that takes so many arguments."""
        for clause in self.code.clauses:
            if count == len(clause.params) or (clause.rest is not None and count > len(clause.params)):
                return clause
        return None


class Analysis:
    """What is known of all functions of a unit."""

    def __init__(self) -> None:
        self.functions: dict[Lambda, LambdaFunction] = {}
        self.variables: dict[Variable, LambdaFunction] = {}
        self.cells: dict[core.Cell, LambdaFunction] = {}
        self.top = LambdaFunction(Lambda(None, []))  # the code of the unit itself

    @classmethod
    def of(cls, forms: Iterable[Node]) -> Analysis:
        analysis = cls()
        forms = list(forms)
        for form in forms:
            if isinstance(form, core.DefineGlobal) and isinstance(form.value, Lambda):
                cell = form.cell
                if cell.sealed and not cell.assigned and cell not in analysis.cells:
                    function = analysis.cells[cell] = analysis._function(form.value)
                    function.cell = cell
        for form in forms:
            analysis._walk(form, None, [analysis.top])
        analysis._settle_regions()
        analysis._settle_owners(analysis.top, forms)
        analysis._settle_free()
        return analysis

    def _function(self, code: Lambda) -> LambdaFunction:
        found = self.functions.get(code)
        if found is None:
            found = self.functions[code] = LambdaFunction(code, len(self.functions))
        return found

    # ---- what is called where -----------------------------------------------------------------------------------

    def _walk(self, node: Node, region: Region | None, around: list[LambdaFunction]) -> None:
        """Look at an expression that ends a region, or stands elsewhere (None)."""
        match node:
            case Local(variable=variable):
                if variable in self.variables:
                    self.variables[variable].is_value(node.place)
            case Global(cell=cell):
                if cell in self.cells:
                    self.cells[cell].is_value(node.place)
            case core.DefineGlobal(cell=cell, value=Lambda() as code):
                function = self._lambda(code, around)
                function.escapes = True
                function.valued = function.valued or function.cell is not cell
            case Lambda():
                self._lambda(node, around).is_value(node.place)
            case If(test=test, then=then, otherwise=otherwise):
                self._walk(test, None, around)
                self._walk(then, region, around)
                self._walk(otherwise, region, around)
            case Seq(items=items):
                for item in items[:-1]:
                    self._walk(item, None, around)
                self._walk(items[-1], region, around)
            case Let(values=values, body=body):
                for value in values:
                    self._walk(value, None, around)
                self._walk(body, region, around)
            case LetValues(value=value, body=body):
                self._walk(value, None, around)
                self._walk(body, region, around)
            case Escape(body=body):
                self._walk(body, region, around)
            case Fix():
                self._fix(node, region, around)
            case Call():
                self._call(node, region, around)
            case _:
                for child in children(node):
                    self._walk(child, None, around)

    def _lambda(self, code: Lambda, around: list[LambdaFunction]) -> LambdaFunction:
        function = self._function(code)
        for clause in code.clauses:
            self._walk(clause.body, function.region, [*around, function])
        return function

    def _fix(self, node: Fix, region: Region | None, around: list[LambdaFunction]) -> None:
        group = FunctionGroup(Region(region))
        for variable, code in zip(node.variables, node.lambdas, strict=True):
            function = self._function(code)
            function.variable, function.group, function.region = variable, group, Region(group.region)
            group.members.append(function)
            self.variables[variable] = function
        for code in node.lambdas:
            self._lambda(code, around)
        self._walk(node.body, group.region, around)

    def known(self, procedure: Node) -> LambdaFunction | None:
        """The function that a call of this calls."""
        match procedure:
            case Local(variable=variable):
                return self.variables.get(variable)
            case Global(cell=cell):
                return self.cells.get(cell)
        return None

    def _call(self, node: Call, region: Region | None, around: list[LambdaFunction]) -> None:
        function = self.known(node.procedure)
        clause = function.clause(len(node.args)) if function is not None else None
        if function is None or clause is None:
            self._walk(node.procedure, None, around)
        else:
            function.calls.append((region, clause))
            if function in around or (function.group and any(f in around for f in function.group.members)):
                function.loops = True
        for arg in node.args:
            self._walk(arg, None, around)

    # ---- which are labels ---------------------------------------------------------------------------------------

    def _settle_regions(self) -> None:
        groups = {f.group: None for f in self.functions.values() if f.group is not None}
        for group in groups:
            if any(f.escapes or len(f.code.clauses) != 1 or f.code.clauses[0].rest for f in group.members):
                group.inside = False
        self._cut(groups)
        changed = True
        while changed:
            changed = False
            for group in groups:
                if group.inside and not all(
                    region is not None and region.within(group.region) for f in group.members for region, _ in f.calls
                ):
                    group.inside = False
                    changed = True
            self._cut(groups)

    def _cut(self, groups: Iterable[FunctionGroup]) -> None:
        for group in groups:
            if not group.inside:
                for function in group.members:
                    function.region.parent = None

    # ---- free variables -----------------------------------------------------------------------------------------

    def _settle_owners(self, owner: LambdaFunction, bodies: Iterable[Node]) -> None:
        """What a function binds, uses, makes and calls in its own code, labels in it included."""
        stack = list(bodies)
        while stack:
            node = stack.pop()
            match node:
                case Local(variable=variable):
                    function = self.variables.get(variable)
                    if function is None:
                        owner.used[variable] = None
                    else:
                        owner.wanted[function] = None
                case SetLocal(variable=variable):
                    owner.used[variable] = None
                case Let(variables=variables):
                    owner.bound.update(variables)
                case LetValues(variables=variables, rest=rest):
                    owner.bound.update(variables)
                    if rest is not None:
                        owner.bound.add(rest)
                case Fix(variables=variables):
                    owner.bound.update(variables)
                case Escape(variable=variable):
                    owner.bound.add(variable)
                case Call(procedure=procedure, args=args):
                    function = self.known(procedure)
                    if function is not None and function.clause(len(args)) is not None:
                        if not function.inside:
                            owner.called[function] = None
                        stack.extend(args)
                        continue
                case Lambda():
                    function = self.functions[node]
                    params = [v for c in node.clauses for v in (*c.params, *([c.rest] if c.rest else []))]
                    if function.inside:
                        owner.bound.update(params)
                        stack.extend(clause.body for clause in node.clauses)
                    else:
                        function.bound.update(params)
                        owner.made.append(function)
                        self._settle_owners(function, [clause.body for clause in node.clauses])
                    continue
                case Prim():
                    pass
            stack.extend(children(node))

    def _settle_free(self) -> None:
        functions = [f for f in self.functions.values() if not f.inside]
        while True:
            free: dict[LambdaFunction, dict[Variable, None]] = {f: {} for f in functions}
            self._grow(functions, free)
            heavy = [f for f in functions if not f.escapes and len(free[f]) > PASSED]
            for function in heavy:
                function.escapes = True
            if not heavy:
                break
        for function in functions:
            function.free = list(free[function])

    def _grow(self, functions: list[LambdaFunction], free: dict[LambdaFunction, dict[Variable, None]]) -> None:
        changed = True
        while changed:
            changed = False
            for function in functions:
                needed = dict(function.used)
                for other in function.made:
                    needed.update(free[other])
                for other in (*function.called, *function.wanted):
                    if not other.escapes:
                        needed.update(free[other])
                    elif free[other] and other is not function and other.variable is not None:
                        needed[other.variable] = None
                found = {v: None for v in needed if v not in function.bound and v is not function.variable}
                if len(found) != len(free[function]):
                    free[function] = found
                    changed = True


def calls_inside(analysis: Analysis, node: Node, last: bool = True) -> bool:
    """Whether an expression calls procedures other than as the last thing that is done.

    If a function does, it needs a frame; then it is better to begin anew for a call of itself than to jump back,
    since paths without calls get along without the frame.
    """
    match node:
        case Call(procedure=procedure, args=args):
            function = analysis.known(procedure)
            if not last and (function is None or not function.inside):
                return True
            return any(calls_inside(analysis, inner, False) for inner in (procedure, *args))
        case If(test=test, then=then, otherwise=otherwise):
            return calls_inside(analysis, test, False) or any(
                calls_inside(analysis, n, last) for n in (then, otherwise)
            )
        case Seq(items=items):
            return any(calls_inside(analysis, n, False) for n in items[:-1]) or calls_inside(analysis, items[-1], last)
        case Let(values=values, body=body):
            return any(calls_inside(analysis, n, False) for n in values) or calls_inside(analysis, body, last)
        case LetValues(value=value, body=body):
            return calls_inside(analysis, value, False) or calls_inside(analysis, body, last)
        case Fix(lambdas=lambdas, body=body):
            bodies = [code.clauses[0].body for code in lambdas if analysis.functions[code].inside]
            return any(calls_inside(analysis, n, last) for n in (*bodies, body))
        case Lambda():
            return False
    return any(calls_inside(analysis, inner, False) for inner in children(node))


def recurs_once(analysis: Analysis, function: LambdaFunction, node: Node) -> bool:
    """Whether a function waits for itself, on each path once: then its calls lie deep in one another, and return one
    after the other. Where it does so more often, in a tree of calls, most are not deep."""

    def waits(node: Node, last: bool) -> int:
        match node:
            case Call(procedure=procedure, args=args):
                inner = sum(waits(arg, False) for arg in args)
                return inner + (not last and analysis.known(procedure) is function)
            case If(test=test, then=then, otherwise=otherwise):
                return waits(test, False) + max(waits(then, last), waits(otherwise, last))
            case Seq(items=items):
                return sum(waits(item, False) for item in items[:-1]) + waits(items[-1], last)
            case Let(values=values, body=body):
                return sum(waits(value, False) for value in values) + waits(body, last)
            case LetValues(value=value, body=body):
                return waits(value, False) + waits(body, last)
            case Fix(lambdas=lambdas, body=body):
                found = waits(body, last)
                for code in lambdas:
                    if (label := analysis.functions[code]).inside:
                        found += waits(code.clauses[0].body, last) * (2 if label.loops else 1)
                return found
            case Lambda():
                return 0
        return sum(waits(inner, False) for inner in children(node))

    return waits(node, True) == 1


def rest_of(body: Node) -> Node | None:
    """What is left of a body behind tests and results that need no calls; None where it has no such beginning.

    Such a beginning and the rest become two functions. LLVM puts the first into its callers, so that the easy cases
    of a recursion cost no call at all.
    """
    rest, peeled = body, 0
    while isinstance(rest, If) and _is_easy(rest.test):
        easy = [_is_easy(branch) for branch in (rest.then, rest.otherwise)]
        if easy[0] == easy[1]:
            break
        peeled += _size(rest.test) + _size(rest.then if easy[0] else rest.otherwise)
        rest = rest.otherwise if easy[0] else rest.then
    return rest if rest is not body and peeled <= EASY_SIZE and not _is_easy(rest) else None


def _is_easy(node: Node) -> bool:
    if isinstance(node, Const | Local | Prim | If):
        return all(map(_is_easy, children(node)))
    return False


def _size(node: Node) -> int:
    return 1 + sum(map(_size, children(node)))
