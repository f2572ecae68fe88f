"""Bodies: the forms of a procedure's body, or of a library or program, expanded in two passes.

The first pass expands the macros at the surface, takes in what is defined, and leaves expressions alone; the second
expands those, when every name of the body has its meaning. So procedures and macros may refer to what is defined
further down, and macros may define macros.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from eshkol.lang.core import Cell, Const, DefineGlobal, Letrec, Node, Seq, SetGlobal, Unit, Variable
from eshkol.lang.datum import UNSPECIFIED, Datum, Symbol
from eshkol.lang.meanings import CellBinding, FormBinding, FormExpander, LocalBinding, MacroBinding
from eshkol.lang.namespaces import Frame, Namespace
from eshkol.lang.report import bad
from eshkol.lang.scopes import Binding, Scopes, add_binding, find_binding, remove_binding
from eshkol.lang.source import Place
from eshkol.lang.syntax import Syntax
from eshkol.support.interrupts import check

MOST_NESTED_MACROS = 10_000


class Body(ABC):
    """What a form of definition tells of its contents (`FormBinding.definition`)."""

    def __init__(self, expander: FormExpander, frame: Frame) -> None:
        self.expander = expander
        self.frame = frame
        self._todo: list[tuple[Syntax, int]] = []  # the next form is the last one; with the macros around it
        self._nested = 0
        self._declared: list[tuple[Syntax, Datum]] = []

    # ---- for forms of definition -------------------------------------------------------------------------------------

    @abstractmethod
    def define(self, identifier: Syntax, value: Callable[[], Node], form: Syntax) -> Variable | Cell:
        """A variable; its value is expanded in the second pass."""

    @abstractmethod
    def define_syntax(self, identifier: Syntax, make: Callable[[Syntax], Binding], form: Syntax) -> None:
        """A macro, at once. `make` gets the name that is defined, with the scopes it is bound in."""

    @abstractmethod
    def effect(self, value: Callable[[], Node]) -> None:
        """An expression, expanded in the second pass."""

    def splice(self, forms: Iterable[Syntax]) -> None:
        """These forms come next, in place of the one that is at hand (begin, include)."""
        self._todo.extend((form, self._nested) for form in reversed(list(forms)))

    def declare(self, identifier: Syntax, annotation: Datum) -> None:
        """`(: name type)`: looked at when everything is defined."""
        self._declared.append((identifier, annotation))

    # ---- the first pass ----------------------------------------------------------------------------------------------

    def _collect(self) -> None:
        expander, frame = self.expander, self.frame
        while self._todo:
            check()
            form, self._nested = self._todo.pop()
            head = form.head
            if head is not None:
                binding = expander.meaning(head)
                if type(binding) is FormBinding:
                    frame.heads.setdefault(head.content, []).append(head)
                    if binding.definition is not None:
                        binding.definition(expander, form, self)
                        continue
                elif type(binding) is MacroBinding:
                    if self._nested > MOST_NESTED_MACROS:
                        raise expander.endless(form)
                    frame.heads.setdefault(head.content, []).append(head)
                    self._todo.append((expander.use_macro(binding, form, frame), self._nested + 1))
                    continue
            self._expression(form)
        for identifier, annotation in self._declared:
            self._annotate(identifier, annotation)

    def _expression(self, form: Syntax) -> None:
        expander, frame = self.expander, self.frame
        self.effect(lambda: expander.expand(form, frame))

    def _bound_name(self, identifier: Syntax) -> Syntax:
        """The identifier as it is bound in this body; an error if the body went by another meaning before."""
        identifier = identifier.without(self.frame.use_sites)
        if not identifier.scopes:
            raise bad(f"`{identifier.name}` has no scope, so nobody could refer to it", identifier)
        for head in self.frame.heads.get(identifier.content, ()):
            if identifier.scopes <= head.scopes:
                raise bad(
                    f"`{identifier.name}` is defined here, but was used before with another meaning",
                    identifier,
                    "put the definition first, or choose another name",
                    notes=(("it was used here:", head.place),),
                )
        return identifier

    def _annotate(self, identifier: Syntax, annotation: Datum) -> None:
        binding = self.expander.meaning(identifier)
        if isinstance(binding, LocalBinding):
            binding.variable.annotation = annotation
        elif isinstance(binding, CellBinding) and self.frame.namespace.cells.get(binding.cell.name) is binding.cell:
            binding.cell.annotation = annotation
        else:
            raise bad(f"`{identifier.name}` is given a type, but not defined here", identifier)


class LocalBody(Body):
    """The body of a procedure, or of another form that binds."""

    def __init__(self, expander: FormExpander, frame: Frame, form: Syntax) -> None:
        super().__init__(expander, frame)
        self.form = form
        self._items: list[tuple[Variable | None, Callable[[], Node]]] = []
        self._defined: dict[tuple[Symbol, Scopes], Place | None] = {}

    def define(self, identifier: Syntax, value: Callable[[], Node], form: Syntax) -> Variable:
        identifier = self._new_name(identifier)
        variable = Variable(identifier.name, identifier.place)
        add_binding(identifier.content, identifier.scopes, LocalBinding(variable, self.frame.level))
        self._items.append((variable, value))
        return variable

    def define_syntax(self, identifier: Syntax, make: Callable[[Syntax], Binding], form: Syntax) -> None:
        identifier = self._new_name(identifier)
        add_binding(identifier.content, identifier.scopes, make(identifier))

    def effect(self, value: Callable[[], Node]) -> None:
        self._items.append((None, value))

    def _new_name(self, identifier: Syntax) -> Syntax:
        identifier = self._bound_name(identifier)
        key = (identifier.content, identifier.scopes)
        if key in self._defined:
            raise bad(
                f"`{identifier.name}` is defined twice in one body",
                identifier,
                "use set! to change a variable",
                notes=(("the first definition is here:", self._defined[key]),),
            )
        self._defined[key] = identifier.place
        return identifier

    def finish(self) -> Node:
        self._collect()
        items, place = self._items, self.form.place
        last = len(items)
        while last > 0 and items[last - 1][0] is None:
            last -= 1
        if last == len(items):
            what = "ends with a definition" if items else "is empty"
            raise bad(f"the body of this form {what}", self.form, "the last form of a body is an expression")
        variables: list[Variable] = []
        values: list[Node] = []
        for variable, value in items[:last]:
            node = value()
            if variable is None:  # an expression between definitions is computed in its turn
                variable, node = Variable("_", node.place), Seq(node.place, [node, Const(node.place, UNSPECIFIED)])
            variables.append(variable)
            values.append(node)
        results = [value() for _, value in items[last:]]
        body = results[0] if len(results) == 1 else Seq(place, results)
        return Letrec(place, variables, values, body) if variables else body


@dataclass(frozen=True, slots=True)
class Change:
    """A name of a namespace that means something else since it was defined."""

    namespace: Namespace
    symbol: Symbol
    scopes: Scopes
    before: Binding | None
    binding: Binding
    defined: str | None = None  # the name of a cell that has its first definition by this

    def take_back(self) -> None:
        """It means what it meant before, unless it has got one more meaning since."""
        found = find_binding(self.symbol, self.scopes)
        if found is None or found[1] is not self.binding:
            return
        if self.before is None:
            remove_binding(self.symbol, self.scopes)
        else:
            add_binding(self.symbol, self.scopes, self.before)
        if self.defined is not None:
            self.namespace.defined.discard(self.defined)


def take_back(changes: list[Change], has_value: Callable[[Cell], bool] | None = None) -> None:
    """A unit did not come to its end: names that it was to define mean what they meant before.

    Where it had begun to run (`has_value`), that holds for variables without a value alone.
    """
    for change in reversed(changes):
        binding = change.binding
        if has_value is None or (isinstance(binding, CellBinding) and not has_value(binding.cell)):
            change.take_back()


class UnitBody(Body):
    """The top level of a library or program, or one form at a prompt."""

    def __init__(self, expander: FormExpander, namespace: Namespace) -> None:
        super().__init__(expander, namespace.frame)
        self.namespace = namespace
        self.cells: dict[Cell, None] = {}  # that are defined here, in order
        namespace.frame.heads.clear()
        self.changes: list[Change] = []
        self._forms: list[Callable[[], Node]] = []
        self._places: dict[tuple[Symbol, Scopes], Place | None] = {}

    def define(self, identifier: Syntax, value: Callable[[], Node], form: Syntax) -> Cell:
        identifier = self._bound_name(identifier)
        namespace, symbol, scopes = self.namespace, identifier.content, identifier.scopes
        cell = self._known_cell(symbol, scopes)
        if cell is None:
            name = symbol.name if scopes == namespace.scopes else namespace.fresh_name(symbol.name)
            cell = namespace.cell(name, identifier.place)
        again = cell.name in namespace.defined
        if namespace.kind == "library":
            self._once(identifier)
        namespace.defined.add(cell.name)
        self._places[symbol, scopes] = identifier.place
        binding = CellBinding(cell)
        before = add_binding(symbol, scopes, binding)
        self.changes.append(Change(namespace, symbol, scopes, before, binding, None if again else cell.name))
        if cell not in self.cells:
            self.cells[cell] = None
            cell.place = identifier.place
        target = cell
        if again and namespace.kind == "program":
            cell.assigned = True
            self._forms.append(lambda: SetGlobal(form.place, target, value()))
        else:
            self._forms.append(lambda: DefineGlobal(form.place, target, value()))
        return cell

    def _known_cell(self, symbol: Symbol, scopes: Scopes) -> Cell | None:
        """The cell of this namespace that has just this name already."""
        found = find_binding(symbol, scopes)
        if found is None or found[0] != scopes or not isinstance(found[1], CellBinding):
            return None
        cell = found[1].cell
        return cell if self.namespace.cells.get(cell.name) is cell else None

    def _once(self, identifier: Syntax) -> None:
        key = (identifier.content, identifier.scopes)
        if key in self._places:
            raise bad(
                f"`{identifier.name}` is defined twice in one library",
                identifier,
                "use set! to change a variable",
                notes=(("the first definition is here:", self._places[key]),),
            )

    def define_syntax(self, identifier: Syntax, make: Callable[[Syntax], Binding], form: Syntax) -> None:
        identifier = self._bound_name(identifier)
        if self.namespace.kind == "library":
            self._once(identifier)
        symbol, scopes = identifier.content, identifier.scopes
        self._places[symbol, scopes] = identifier.place
        binding = make(identifier)
        before = add_binding(symbol, scopes, binding)
        self.changes.append(Change(self.namespace, symbol, scopes, before, binding))

    def effect(self, value: Callable[[], Node]) -> None:
        self._forms.append(value)

    def finish(self, name: str) -> Unit:
        self._collect()
        return Unit(
            name,
            [form() for form in self._forms],
            list(self.cells),
            self.changes if self.namespace.kind == "repl" else [],
            self.namespace.typed,
            dict(self.namespace.types),
            dict(self.namespace.records),
            set(self.cells) if self.namespace.is_alone else set(),
        )
