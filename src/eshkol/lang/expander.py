"""The expander: syntax objects come in, core forms go out; macros are used up on the way.

    namespace = Namespace("program")                         # the names of one library, program or prompt
    namespace.bind("car", CellBinding(cell))                 # an import
    expander = Expander(primitive, compile_transformer)
    unit = expander.expand_unit(forms, namespace)            # forms: what the reader gives

The meaning of an identifier is that of its binding (`lang/meanings.py`); the forms that need no macro are bindings too
(`lang/forms.py`, `lang/derived.py`), so that every name can be shadowed. Bodies are the business of `lang/bodies.py`.
Nothing here recurs further than `DEEPEST` levels of the program, and it does so on a stack that is large enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from eshkol.errors import AmbiguousName, BadSyntax, LanguageError, UnboundName
from eshkol.lang import derived, forms, records, syntax_case
from eshkol.lang.bodies import LocalBody, UnitBody, take_back
from eshkol.lang.core import OWNERS, Call, Cell, Const, Global, Lambda, Local, Node, Unit
from eshkol.lang.datum import Labelled, List, Symbol, Vector
from eshkol.lang.deep import run_deep
from eshkol.lang.guesses import undefined
from eshkol.lang.meanings import CellBinding, FormBinding, LocalBinding, MacroBinding, PatternBinding, Transformer
from eshkol.lang.namespaces import Frame, Namespace
from eshkol.lang.reader import BRACES
from eshkol.lang.report import bad, brief, macro_name, uses_of
from eshkol.lang.rules import SyntaxRules
from eshkol.lang.scopes import Ambiguous, Binding, Scope, find_binding
from eshkol.lang.source import Place
from eshkol.lang.syntax import Syntax, to_datum
from eshkol.support.collector import without_collector
from eshkol.support.interrupts import check

DEEPEST = 10_000  # levels of nesting in a program, after expansion
DEEPEST_BODIES = 1_000  # bodies within one another: each adds a scope to everything in it
MOST_EXPANSIONS = 10_000  # of one form, each by what the one before has made
MOST_USES = 100_000  # of macros in a unit, besides one for each of its characters: what doubles again and again ends


class Expander:
    """`primitive(name)` gives the cell of a primitive of the runtime (of the library (eshkol primitives)).

    `compile_transformer(node, name, place)` makes a transformer of a core form whose value is a procedure of one
    argument, the use (or what make-variable-transformer gives).
    """

    def __init__(
        self,
        primitive: Callable[[str], Cell],
        compile_transformer: Callable[[Node, str, Place | None], Transformer] | None = None,
    ) -> None:
        self.primitive = primitive
        self.compile_transformer = compile_transformer
        self.use: Place | None = None  # the macro use that is being transformed: for what the transformer writes
        self._depth = 0
        self._uses_left = MOST_USES

    # ---- entries -----------------------------------------------------------------------------------------------------

    @without_collector()
    def expand_unit(self, forms: Iterable[Syntax], namespace: Namespace, name: str | None = None) -> Unit:
        """The forms of a library, of a program, or of one entry at a prompt. They get the namespace's scope here."""
        return run_deep(self._expand_unit, forms, namespace, name)

    def _expand_unit(self, forms: Iterable[Syntax], namespace: Namespace, name: str | None) -> Unit:
        saved, self._depth = (self._depth, self.use, self._uses_left), 0
        self.use = None
        body = UnitBody(self, namespace)
        try:
            wrapped = [namespace.wrap(form) for form in forms]
            self._uses_left = MOST_USES + sum(form.place.end - form.place.start for form in wrapped if form.place)
            body.splice(wrapped)
            return body.finish(name or namespace.name)
        except BaseException as error:
            take_back(body.changes)
            if not isinstance(error, RecursionError):
                raise
            raise BadSyntax("the program is nested too deeply", hint="break it into smaller procedures") from None
        finally:
            self._depth, self.use, self._uses_left = saved

    def expand(self, syntax: Syntax, frame: Frame) -> Node:
        """An expression."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._too_deep(syntax)
        expansions = 0
        while True:
            content = syntax.content
            kind = type(content)
            made: Node | Syntax
            if kind is Symbol:
                made = self._identifier(syntax, frame)
            elif kind is List:
                made = self._list(syntax, content, frame)
            elif kind is Labelled and type(content.datum.content) is List:
                raise bad("a labelled list is no expression", syntax, "quote it: '#0=(a . #0#)")
            elif kind is Vector or kind is Labelled:
                made = Const(syntax.place, to_datum(syntax))
            else:
                made = Const(syntax.place, content)
            if not isinstance(made, Syntax):
                self._depth -= 1
                return made
            syntax = made
            expansions += 1
            if expansions > MOST_EXPANSIONS:
                raise self.endless(syntax)

    def expand_named(self, syntax: Syntax, frame: Frame, name: str) -> Node:
        """An expression whose value gets a name: a procedure without one of its own is called by it."""
        node = self.expand(syntax, frame)
        if type(node) is Lambda and node.name is None:
            node.name = name
        return node

    def expand_body(self, forms: Iterable[Syntax], frame: Frame, form: Syntax) -> Node:
        """A body in which definitions may stand, with the frame made for it; `form` is what it is the body of."""
        if frame.depth > DEEPEST_BODIES:
            raise self._too_deep(form, DEEPEST_BODIES, "bodies are")
        body = LocalBody(self, frame, form)
        body.splice(forms)
        return body.finish()

    # ---- expressions -------------------------------------------------------------------------------------------------

    def _list(self, syntax: Syntax, content: List, frame: Frame) -> Node | Syntax:
        check()
        items = content.items
        if not items:
            raise bad("() is no expression", syntax, "the empty list is written '()")
        head: Syntax = items[0]
        procedure: Node | None = None
        if type(head._content) is Symbol:
            binding = self.meaning(head)
            if isinstance(binding, FormBinding):
                return self.use_form(binding, syntax, frame)
            if isinstance(binding, MacroBinding):
                return self.use_macro(binding, syntax, frame)
            made = self._reference(head, binding, frame)
            procedure = self.expand(made, frame) if isinstance(made, Syntax) else made
        if content.tail is not None:
            raise bad("a call has no dot before its last argument", syntax, "(apply f a rest) calls with a list")
        if procedure is None:
            procedure = self.expand(head, frame)
        return Call(syntax.place, procedure, [self.expand(item, frame) for item in items[1:]])

    def use_form(self, binding: FormBinding, syntax: Syntax, frame: Frame) -> Node:
        if binding.expression is not None:
            return binding.expression(self, syntax, frame)
        if binding.definition is not None:
            raise bad(
                f"`{binding.name}` stands where an expression must",
                syntax,
                "a definition stands at top level or at the beginning of a body; (let () ...) makes one",
            )
        raise bad(
            f"`{binding.name}` does not belong here", syntax, f"it is only a part of other forms{binding.doc or ''}"
        )

    def _identifier(self, syntax: Syntax, frame: Frame) -> Node | Syntax:
        return self._reference(syntax, self.meaning(syntax), frame)

    def _reference(self, syntax: Syntax, binding: Binding | None, frame: Frame) -> Node | Syntax:
        if isinstance(binding, LocalBinding):
            if binding.level != frame.level:
                raise self._other_level(syntax)
            return Local(syntax.place, binding.variable)
        if isinstance(binding, CellBinding):
            if binding.cell.library == OWNERS:
                self._owns(frame)
            return Global(syntax.place, binding.cell)
        if binding is None:
            return Global(syntax.place, self.unbound(syntax, frame))
        name = syntax.name
        if isinstance(binding, MacroBinding):
            if binding.transformer.identifiers:
                return self.use_macro(binding, syntax, frame)
            raise bad(f"`{name}` is a macro, not a variable", syntax, f"use it as ({name} ...)")
        if isinstance(binding, PatternBinding):
            raise bad(f"the pattern variable `{name}` stands outside of a template", syntax, f"write #'{name}")
        raise bad(f"`{name}` is syntax, not a variable", syntax, f"use it as ({name} ...)")

    def _owns(self, frame: Frame) -> None:
        """What says who owns what is checked as types are."""
        if frame.namespace.name != OWNERS:
            frame.namespace.typed = True

    def _other_level(self, syntax: Syntax) -> LanguageError:
        return bad(
            f"the variable `{syntax.name}` has no value while macros are expanded",
            syntax,
            "a transformer can use what other libraries export, and its own variables",
        )

    def _too_deep(self, syntax: Syntax, limit: int = DEEPEST, what: str = "the program is") -> LanguageError:
        if len(uses_of(syntax.place)) > limit // 4:
            return self.endless(syntax)
        return bad(f"{what} nested more than {limit} levels deep", syntax, "break it into smaller procedures")

    def endless(self, syntax: Syntax) -> LanguageError:
        """A macro that expands into itself again and again."""
        chain: list[str] = []
        for use in uses_of(syntax.place)[:100]:
            name = macro_name(use)
            if name in chain:
                break
            chain.append(name)
        names = " → ".join(f"`{name}`" for name in reversed(chain)) or "a macro"
        return bad(f"the expansion of {names} does not end", syntax, "a rule of the macro makes the same use again")

    # ---- names -------------------------------------------------------------------------------------------------------

    def meaning(self, identifier: Syntax) -> Binding | None:
        """The binding of an identifier; None where nothing binds it."""
        try:
            found = find_binding(identifier._content, identifier.scopes)
        except Ambiguous as error:
            raise bad(error.message, identifier, error.hint, kind=AmbiguousName) from None
        return None if found is None else found[1]

    def is_form(self, syntax: Syntax, name: str) -> bool:
        """Whether this is the identifier of auxiliary syntax such as `else`, by its meaning; or nothing binds it."""
        content = syntax._content
        if type(content) is not Symbol:
            return False
        binding = self.meaning(syntax)
        if binding is None:
            return content.name == name
        return type(binding) is FormBinding and binding.name == name

    def unbound(self, identifier: Syntax, frame: Frame) -> Cell:
        """At a prompt, the cell that someone may define later; an error elsewhere."""
        namespace = frame.namespace
        if identifier.name == BRACES:
            raise bad(
                "braces hold a proposition about sizes, which stands in types alone",
                identifier,
                "use ( ) or [ ]; (i : {i < n}) is a parameter with one",
            )
        if namespace.kind == "repl" and namespace.scope in identifier.scopes and frame.level == 0:
            cell = namespace.cell(identifier.name, identifier.place)
            namespace.bind(identifier.name, CellBinding(cell))
            return cell
        name = identifier.name
        hint = undefined(name, self.visible(identifier))
        raise bad(f"the name `{name}` is not defined", identifier, hint, kind=UnboundName)

    def visible(self, identifier: Syntax) -> set[str]:
        """Names that can be used where the identifier stands."""
        return {
            symbol.name
            for scope in identifier.scopes
            for symbol, entries in scope.bindings.items()
            if any(scopes <= identifier.scopes for scopes, _ in entries)
        }

    # ---- macros ------------------------------------------------------------------------------------------------------

    def use_macro(self, binding: MacroBinding, use: Syntax, frame: Frame) -> Syntax:
        """What a macro makes of one use of it."""
        check()
        transformer = binding.transformer
        self._uses_left -= 1
        if self._uses_left < 0:
            raise self.endless(use)
        if binding.frame is frame:
            scope = Scope("use")
            frame.use_sites.add(scope)
            use = use.add(scope)
        if transformer.hygienic:
            return transformer.transform(use, self)
        introduction = Scope("macro")
        saved, self.use = self.use, use.place
        try:
            return transformer.transform(use.flip(introduction), self).flip(introduction)
        finally:
            self.use = saved

    def transformer(self, expression: Syntax, name: str, frame: Frame) -> Binding:
        """The binding that `(define-syntax name expression)` makes; `frame` is that of the definition."""
        expansions = 0
        while True:
            head = expression if expression.is_identifier else expression.head
            binding = None if head is None else self.meaning(head)
            if head is expression:
                if isinstance(binding, (FormBinding, MacroBinding)):
                    return binding  # another name for the same syntax
            elif isinstance(binding, MacroBinding):
                expression = self.use_macro(binding, expression, frame)
                expansions += 1
                if expansions > MOST_EXPANSIONS:
                    raise self.endless(expression)
                continue
            elif isinstance(binding, FormBinding) and binding.name == "syntax-rules":
                return MacroBinding(SyntaxRules(expression, name), frame)
            elif (
                isinstance(binding, FormBinding)
                and binding.name == "syntax-case"
                and syntax_case.is_short_form(expression)
            ):
                node = syntax_case.expand_short_form(self, expression, frame.transformer(), name)
                return MacroBinding(self._compiled(node, name, expression), frame)
            break
        if expression.items is None and not expression.is_identifier:
            raise bad(
                f"`{name}` is defined as syntax by something that is no transformer: {brief(expression)}",
                expression,
                "write (syntax-rules ...) or a procedure that takes the use",
            )
        node = self.expand_named(expression, frame.transformer(), name)
        return MacroBinding(self._compiled(node, name, expression), frame)

    def _compiled(self, node: Node, name: str, expression: Syntax) -> Transformer:
        if self.compile_transformer is None:
            raise bad("transformers that are procedures cannot be run here", expression, "use syntax-rules")
        return self.compile_transformer(node, name, expression.place)


def core_forms() -> dict[str, FormBinding]:
    """All forms that the expander knows by itself, by name; for the library that exports them."""
    return {**forms.FORMS, **derived.FORMS, **records.FORMS, **syntax_case.FORMS}
