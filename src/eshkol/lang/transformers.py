"""Macros that are procedures: syntax goes into compiled code and comes back; and what such code asks of the expander.

A transformer is a procedure of one argument, the use, which gives the syntax that stands for it. The expander expands
it to core forms, the code generator compiles those (`Native.evaluate`), and `ProceduralTransformer` calls the result.
On its way in, the use is a syntax object, a native value that wraps the Python one. The primitives of
native/scheme/hostcalls.h (matching, templates, `syntax->datum`, `eval`, ...) are answered by `Host`.

A value of compiled code and its meaning here (a tree):

| Scheme | tree |
|---|---|
| syntax object | `Syntax` (also `Pattern` and `Template`, which are constants of transformers) |
| environment | `Interaction` |
| pair, empty list, vector | `List`, `Vector` |
| symbol, number, string, ... | as in `lang/datum.py` |
| procedure, record, ... | `Opaque` |

Lists that templates make of pattern variables are ordinary lists of syntax, so `(map f #'(field ...))` works; whatever
a transformer gives back may mix lists and syntax. Which symbols mean what:

- A symbol in what a transformer gives back must be syntax: a bare one has no context, and is an error that says so.
- A bare symbol that is matched against a pattern (`with-syntax`, or the subject of `syntax-case`) gets the context of
  the macro use, as if `(datum->syntax keyword symbol)` had been written: names that a macro puts together with
  `string->symbol` are those that the user of the macro can write.
- `(define-syntax name (syntax-case () (pattern output) ...))`, without the `lambda` and the subject, is accepted for
  `(lambda (use) (syntax-case use () (pattern output) ...))`. In such a macro, an identifier make-V in a template, V
  being a pattern variable outside of ellipses that matched a name, is that name with make- in front and the name's
  context: so that `(define-struct point (x y))` defines make-point.
- `symbol->string` takes identifiers too."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eshkol.errors import LanguageError, SchemeError
from eshkol.lang.bodies import take_back
from eshkol.lang.core import Unit
from eshkol.lang.datum import UNSPECIFIED, Labelled, List, Reference, Symbol, Vector, symbol_text, text
from eshkol.lang.meanings import FormExpander, bound_identifier, free_identifier
from eshkol.lang.patterns import Pattern, Template
from eshkol.lang.report import bad, brief
from eshkol.lang.scopes import NO_SCOPES, Scope
from eshkol.lang.source import Place
from eshkol.lang.syntax import Syntax, identifier, to_datum, to_syntax
from eshkol.lang.unexpand import unit_datum

if TYPE_CHECKING:
    from eshkol.lang.world import World

Value = Any  # a value of compiled code, as the implementation of `Native` has it
Tree = Any  # see above

VARIABLE_TRANSFORMER = Symbol("%variable-transformer")  # make-variable-transformer gives #(this procedure)


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value that means nothing to the expander: what it is called, and the value itself."""

    kind: str  # "procedure", "record", ...
    value: Value


class Native(ABC):
    """Compiled code, as seen from here; the runtime's bridge implements it."""

    @abstractmethod
    def evaluate(self, unit: Unit) -> Value:
        """Run a unit now; the value of its last form, which stays alive as long as it is held here."""

    @abstractmethod
    def thunk(self, unit: Unit) -> Value:
        """A procedure without parameters that runs the unit when it is called (in tail position: for eval)."""

    @abstractmethod
    def call(self, procedure: Value, argument: Value) -> Value:
        """Call a procedure; an error in it that nothing handles comes out as a SchemeError."""

    @abstractmethod
    def make(self, tree: Tree) -> Value:
        """The value that a tree stands for."""

    @abstractmethod
    def take(self, value: Value) -> Tree:
        """The tree of a value; raises an error for one that is cyclic."""


class ProceduralTransformer:
    """A macro whose transformer is a compiled procedure."""

    hygienic = False
    identifiers = True

    def __init__(self, host: Host, name: str, procedure: Value, assignments: bool = False) -> None:
        self.host = host
        self.name = name
        self.procedure = procedure
        self.assignments = assignments

    def transform(self, use: Syntax, expander: FormExpander) -> Syntax:
        host, native = self.host, self.host.native
        host.uses.append((use, expander, self.name))
        host.failure = None
        try:
            tree = native.take(native.call(self.procedure, native.make(use)))
        except SchemeError as error:
            failure, host.failure = host.failure, None
            if failure is not None:
                raise failure from None
            raise bad(f"the macro `{self.name}` failed: {error.message}", use, error.hint) from error
        finally:
            host.uses.pop()
        return self._syntax(tree, use)

    def _syntax(self, tree: Tree, use: Syntax) -> Syntax:
        name = self.name
        if tree is UNSPECIFIED:
            raise bad(f"the macro `{name}` gives no syntax for {brief(use)}", use)
        for leaf in leaves(tree):
            if type(leaf) is Symbol:
                symbol = symbol_text(leaf.name)
                raise bad(
                    f"the macro `{name}` gives the symbol {symbol} without a context: nobody can tell what it means",
                    use,
                    f"write #'{symbol} for what it means in the macro, or (datum->syntax keyword '{symbol}) for what "
                    "it means where the macro is used",
                )
            if type(leaf) is Opaque or isinstance(leaf, (Pattern, Template)):
                what = leaf.kind if type(leaf) is Opaque else "pattern"
                raise bad(f"the macro `{name}` gives a {what}, which cannot be part of a program", use)
        return to_syntax(None, tree, use.place)


def leaves(tree: Tree) -> list[Any]:
    """What a tree is made of; syntax objects are whole."""
    found, todo = [], [tree]
    while todo:
        item = todo.pop()
        kind = type(item)
        if kind is List:
            todo += item.items
            if item.tail is not None:
                todo.append(item.tail)
        elif kind is Vector:
            todo += item.items
        elif kind is Labelled or kind is Reference:
            raise bad("syntax cannot be cyclic", None)
        else:
            found.append(item)
    return found


class Host:
    """Answers what compiled code asks of the expander, by the Scheme names of the operations."""

    def __init__(self, native: Native, world: World) -> None:
        self.native = native
        self.world = world
        self.uses: list[
            tuple[Syntax, FormExpander, str]
        ] = []  # of the transformers that are running, the innermost last
        self.failure: LanguageError | None = None  # the last error of `answer`, with its places
        self._loads: dict[int, Any] = {}
        self._load_number = 0
        self._operations: dict[str, Callable[..., Tree]] = {
            "%syntax-match": self._match,
            "%syntax-template": self._template,
            "%syntax-name": self._name,
            "%syntax-no-match": self._no_match,
            "syntax->datum": to_datum,
            "datum->syntax": self._datum_to_syntax,
            "identifier?": is_identifier,
            "free-identifier=?": lambda a, b: free_identifier(*self._two("free-identifier=?", a, b)),
            "bound-identifier=?": lambda a, b: bound_identifier(*self._two("bound-identifier=?", a, b)),
            "generate-temporaries": self._temporaries,
            "syntax-violation": self._violation,
            "raise-syntax-error": self._violation,
            "%compile": self._compile,
            "%expand": self._expand,
            "%environment": self._environment,
            "interaction-environment": lambda: self.world.prompt,
            "%load-open": self._load_open,
            "%load-next": self._load_next,
        }

    def answer(self, operation: str, args: Sequence[Value]) -> Value:
        """The answer to a question of compiled code. What it raises becomes an error there."""
        native = self.native
        try:
            result = self._operations[operation](*(native.take(arg) for arg in args))
        except LanguageError as error:
            self.failure = error
            raise
        return result.value if type(result) is Opaque else native.make(result)

    def transformer(self, unit: Unit, name: str, place: Place | None) -> ProceduralTransformer:
        """The macro whose transformer is the value of a unit."""
        value = self.native.evaluate(unit)
        tree = self.native.take(value)
        if type(tree) is Vector and len(tree.items) == 2 and tree.items[0] is VARIABLE_TRANSFORMER:
            return ProceduralTransformer(self, name, tree.items[1].value, assignments=True)
        if type(tree) is not Opaque or tree.kind != "procedure":
            shown = tree.kind if type(tree) is Opaque else text(to_datum(tree))
            raise bad(
                f"the macro `{name}` is defined by something that is no procedure: {shown}",
                place,
                "a transformer is (syntax-rules ...) or a procedure that takes the use: (lambda (use) ...)",
            )
        return ProceduralTransformer(self, name, value)

    # ---- syntax ------------------------------------------------------------------------------------------------------

    @property
    def keyword(self) -> Syntax | None:
        """The name of the macro in the use that is being transformed."""
        if not self.uses:
            return None
        use = self.uses[-1][0]
        return use if use.is_identifier else use.head

    @property
    def use(self) -> Syntax | None:
        return self.uses[-1][0] if self.uses else None

    def _wrapped(self, tree: Tree) -> Syntax:
        if type(tree) is Syntax:
            return tree
        use = self.use
        return to_syntax(self.keyword, tree, None if use is None else use.place)

    def _match(self, subject: Tree, pattern: Pattern) -> Tree:
        for leaf in leaves(subject):
            if type(leaf) is Opaque:
                raise bad(f"a {leaf.kind} is matched against a pattern; only syntax can be", self.use)
        values = pattern.match(self._wrapped(subject))
        return False if values is None else Vector([_listed(value) for value in values])

    def _template(self, template: Template, *values: Tree) -> Tree:
        depths = {variable.index: variable.depth for variable in template.occurrences.values()}
        given = [_columns(value, depths.get(index, 0), self.use) for index, value in enumerate(values)]
        use = self.use
        return template.make(given, NO_SCOPES, None if use is None else use.place)

    def _name(self, prefix: str, name: Tree) -> Tree:
        """`make-` and a name, in the context of the name."""
        if not is_identifier(name):
            raise bad(f"{prefix}... is made of a name, and {text(to_datum(name))} is none", self.use)
        return identifier(prefix + name.name, name.scopes, name.place)

    def _no_match(self, subject: Tree) -> Tree:
        use = self.use
        name = self.uses[-1][2] if self.uses else "syntax-case"
        raise bad(f"no clause of the macro `{name}` takes {brief(self._wrapped(subject))}", use)

    def _datum_to_syntax(self, context: Tree, datum: Tree) -> Tree:
        if not is_identifier(context):
            raise bad(
                f"datum->syntax takes an identifier, whose context the datum gets; {_shown(context)} is none", self.use
            )
        return to_syntax(context, datum, context.place)

    def _two(self, who: str, a: Tree, b: Tree) -> tuple[Syntax, Syntax]:
        for item in (a, b):
            if not is_identifier(item):
                raise bad(f"{who} compares identifiers; {_shown(item)} is none", self.use)
        return a, b

    def _temporaries(self, tree: Tree) -> Tree:
        content = tree.content if type(tree) is Syntax else tree
        if type(content) is not List or content.tail is not None:
            raise bad(f"generate-temporaries takes a list; {_shown(tree)} is none", self.use)
        return List(identifier("temporary", frozenset((Scope("temporary"),))) for _ in content.items)

    def _violation(self, who: Tree, message: Tree, form: Tree = False, subform: Tree = False) -> Tree:
        where = next((item for item in (subform, form) if type(item) is Syntax), None) or self.use
        written = message if isinstance(message, str) else text(to_datum(message))
        name = "" if who is False else f"{who if isinstance(who, str) else text(to_datum(who))}: "
        shown = "".join(f" {_shown(item)}" for item in (subform or form,) if item is not False)
        raise bad(f"{name}{written}{':' if shown else ''}{shown}", where)

    # ---- evaluation --------------------------------------------------------------------------------------------------

    def _compile(self, expression: Tree, environment: Tree) -> Tree:
        interaction = self._interaction(environment)
        form = to_syntax(None, expression)
        unit = interaction.unit(form)
        return self._thunk(unit or Unit(interaction.label, [], []))

    def _thunk(self, unit: Unit) -> Opaque:
        try:
            return Opaque("procedure", self.native.thunk(unit))
        except BaseException:
            take_back(unit.changes)
            raise

    def _expand(self, expression: Tree, environment: Tree) -> Tree:
        unit = self._interaction(environment).unit(to_syntax(None, expression))
        return UNSPECIFIED if unit is None else unit_datum(unit)

    def _interaction(self, environment: Tree) -> Any:
        from eshkol.lang.program import Interaction

        if not isinstance(environment, Interaction):
            raise bad(f"{_shown(environment)} is no environment", None, "(environment '(scheme base)) makes one")
        return environment

    def _environment(self, sets: Tree) -> Tree:
        from eshkol.lang.imports import parse_import_set

        syntax = to_syntax(None, sets)
        return self.world.environment([parse_import_set(item) for item in syntax.items or ()])

    def _load_open(self, filename: Tree, environment: Tree) -> Tree:
        interaction = self._interaction(environment)
        self._load_number += 1
        self._loads[self._load_number] = interaction.load(filename)
        return self._load_number

    def _load_next(self, number: Tree) -> Tree:
        units = self._loads.get(number)
        unit = None if units is None else next(units, None)
        if unit is None:
            self._loads.pop(number, None)
            return False
        return self._thunk(unit)


def is_identifier(tree: Tree) -> bool:
    return type(tree) is Syntax and tree.is_identifier


def _shown(tree: Tree) -> str:
    if type(tree) is Opaque:
        return f"a {tree.kind}"
    return brief(to_syntax(None, tree)) if not isinstance(tree, (Pattern, Template)) else "a pattern"


def _listed(value: Any) -> Tree:
    """What a pattern variable matched, lists under ellipses as lists of Scheme."""
    return List(_listed(item) for item in value) if isinstance(value, list) else value


def _columns(tree: Tree, depth: int, use: Syntax | None) -> Any:
    """A value of a pattern variable as templates want it: `depth` levels of Python lists."""
    if depth == 0:
        return tree
    content = tree.content if type(tree) is Syntax else tree
    if type(content) is not List or content.tail is not None:
        raise bad(f"the value in front of an ellipsis (or of #,@) is no list: {_shown(tree)}", use)
    return [_columns(item, depth - 1, use) for item in content.items]
