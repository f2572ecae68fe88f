"""quasiquote: data with holes become calls of cons, list, append and list->vector; what has no holes is a constant."""

from __future__ import annotations

from eshkol.lang.core import Call, Const, Global, Node
from eshkol.lang.datum import Datum, List, Vector, join
from eshkol.lang.forms import call_primitive, parts
from eshkol.lang.meanings import FormExpander
from eshkol.lang.namespaces import Frame
from eshkol.lang.report import bad
from eshkol.lang.source import Place
from eshkol.lang.syntax import Syntax, to_datum

FEW = 8  # items before a tail that are put there one by one
DEEPEST = 5_000


def expand_quasiquote(expander: FormExpander, form: Syntax, frame: Frame) -> Node:
    (template,) = parts(form, 1, 1, "(quasiquote template)")
    return _Quasiquote(expander, frame).node(template, 1, 0)


class _Quasiquote:
    def __init__(self, expander: FormExpander, frame: Frame) -> None:
        self.expander = expander
        self.frame = frame

    def keyword(self, syntax: Syntax) -> str | None:
        """Which of quasiquote's own words a list begins with, if it has one argument."""
        content = syntax.content
        if type(content) is List and len(content.items) == 2 and content.tail is None:
            for word in ("unquote", "quasiquote", "unquote-splicing"):
                if self.expander.is_form(content.items[0], word):
                    return word
        return None

    def node(self, template: Syntax, level: int, depth: int) -> Node:
        if depth > DEEPEST:
            raise bad(f"a quasiquote is nested more than {DEEPEST} levels deep", template)
        content = template.content
        kind = type(content)
        if kind is Vector:
            inner = self.items(content.items, Syntax(List(), place=template.place), template.place, level, depth)
            if type(inner) is Const and type(inner.datum) is List and inner.datum.tail is None:
                return Const(template.place, Vector(inner.datum.items))
            return call_primitive(self.expander, template.place, "list->vector", inner)
        if kind is not List or not content.items:
            return Const(template.place, to_datum(template))
        word = self.keyword(template)
        if word == "unquote" and level == 1:
            return self.expander.expand(content.items[1], self.frame)
        if word == "unquote-splicing" and level == 1:
            raise bad(",@ stands where there is no list to put items into", template, "use , for one value")
        if word is not None:
            level += 1 if word == "quasiquote" else -1
        return self.items(content.items, content.tail, template.place, level, depth)

    def items(
        self, items: tuple[Syntax, ...], tail: Syntax | None, place: Place | None, level: int, depth: int
    ) -> Node:
        """The list of these items. A tail `. ,x` (or with another prefix) has been read as two items, unquote and x."""
        if len(items) > 2 and tail is None:
            last = Syntax(List(items[-2:]), place=place)
            if items[-2].is_identifier and self.keyword(last) is not None:
                tail, items = last, items[:-2]
        end: Node = Const(place, List()) if tail is None else self.node(tail, level, depth + 1)
        segments: list[tuple[bool, list[Node]]] = []  # (spliced, nodes) from left to right
        for item in items:
            if level == 1 and self.keyword(item) == "unquote-splicing":
                segments.append((True, [self.expander.expand(item.content.items[1], self.frame)]))
                continue
            made = self.node(item, level, depth + 1)
            if segments and not segments[-1][0]:
                segments[-1][1].append(made)
            else:
                segments.append((False, [made]))
        for spliced, nodes in reversed(segments):
            end = self.append(nodes[0], end, place) if spliced else self.put(nodes, end, place)
        return end

    def append(self, spliced: Node, end: Node, place: Place | None) -> Node:
        if type(end) is Const and end.datum == List():
            return spliced
        return call_primitive(self.expander, place, "append", spliced, end)

    def put(self, nodes: list[Node], end: Node, place: Place | None) -> Node:
        """`nodes` in front of `end`: constants are joined, the rest is computed."""
        if type(end) is Const:
            data: list[Datum] = []
            while nodes and isinstance(last := nodes[-1], Const):
                data.append(last.datum)
                nodes.pop()
            if data:
                end = Const(place, join(reversed(data), end.datum))
        if not nodes:
            return end
        if type(end) is Const and end.datum == List():
            return self.list(nodes, place)
        if len(nodes) <= FEW:
            for node in reversed(nodes):
                end = call_primitive(self.expander, place, "cons", node, end)
            return end
        return call_primitive(self.expander, place, "append", self.list(nodes, place), end)

    def list(self, nodes: list[Node], place: Place | None) -> Node:
        return Call(place, Global(place, self.expander.primitive("list")), nodes)
