"""What the code generator knows of primitives: their rows in C, and the inline functions that units carry.

Inline functions are read from inline.ll and arithmetic.py; predicates of a type and compositions of car and cdr are
written here. A unit takes along the text of those that it calls, and of those that they call.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from pathlib import Path

from eshkol.codegen import arithmetic, passing
from eshkol.runtime.scheme_table import PrimitiveRow

_FOLDER = Path(__file__).parent
_FUNCTION = re.compile(r"^define [^\n]*?@(\"[^\"]+\"|[\w.]+)\(([^)]*)\)[^\n]*\{$.*?^\}$", re.MULTILINE | re.DOTALL)
_CALLED = re.compile(r"call (?:tailcc )?[^@\n]*@(\"[^\"]+\"|[\w.]+)\(")
_NUMBER = re.compile(r"\$([A-Za-z_][\w.]*)")

# Of a call that never returns: it stays where it is, for the line that it belongs to is that of the error.
FAILS = "noreturn nomerge"

QUICK_ARGUMENTS = 4  # of a call that is made by a function of its own, where code is written quickly

_SLOW = re.compile(r'call (%value|i64|ptr|void) @("prim\.[^"]+"|esk_\w+)\(([^)]*)\)(?! \$FAILS)')

_PASS = re.compile(r"\$PASS\(([^)]*)\)")
_NAMES = tuple(f"%word{i}" for i in range(8))
_TARGET = """\
  %procedure = icmp eq i64 %tf, $TAG_PROCEDURE
  br i1 %procedure, label %jump, label %stuck, !prof !0
stuck:
  call void @esk_not_procedure(ptr %ctx, i64 %tf, i64 %pf)
  unreachable
jump:
  %target = inttoptr i64 %pf to ptr
"""
_JUMP = f"""\
{_TARGET}\
$WORDS
  %jumped = musttail call tailcc %value %target_entry($PASS(%target, %n, {", ".join(_NAMES)}))
  ret %value %jumped"""


def _words(spill: int) -> str:
    """What $WORDS stands for."""
    lines = []
    for i, name in enumerate(_NAMES):
        lines.append(f"%where{i} = getelementptr i64, ptr %direct, i64 {i}")
        lines.append(f"{name} = load i64, ptr %where{i}")
    words = (passing.registers().context, "ptr %target", "i64 %n", *(f"i64 {name}" for name in _NAMES))
    lines += passing.stored(words, spill, "")
    lines.append("%target_at = getelementptr i8, ptr %target, i64 $Closure.entry")
    lines.append("%target_entry = load ptr, ptr %target_at")
    return "\n".join(f"  {line}" for line in lines)


def _again(spill: int) -> str:
    """What $AGAIN stands for."""
    lines = passing.stored(passing.entry(), spill, ".again")
    lines.append("%again_at = getelementptr i8, ptr %self, i64 $Closure.entry")
    lines.append("%again_entry = load ptr, ptr %again_at")
    lines.append(f"%again = musttail call tailcc %value %again_entry({passing.parameters(passing.entry())})")
    return "\n".join(f"  {line}" for line in [*lines, "ret %value %again"])


def _passed(found: re.Match[str]) -> str:
    """What $PASS stands for: the words that have registers."""
    closure, count, *words = found[1].split(", ")
    every = [passing.registers().context, f"ptr {closure}", f"i64 {count}", *(f"i64 {word}" for word in words)]
    return passing.parameters([*every, *["i64 undef"] * (len(passing.entry()) - len(every))])


# predicates that ask for nothing but the tag
TAGS_OF_PREDICATES = {
    "null?": ("NULL",), "pair?": ("PAIR",), "string?": ("STRING",), "char?": ("CHAR",), "vector?": ("VECTOR",),
    "symbol?": ("SYMBOL",), "procedure?": ("PROCEDURE",), "boolean?": ("BOOLEAN",), "bytevector?": ("BYTEVECTOR",),
    "%plain-number?": ("FIXNUM", "FLONUM", "BIGNUM", "RATIONAL", "COMPLEX"),
    "%fixnum?": ("FIXNUM",), "%flonum?": ("FLONUM",), "keyword?": ("KEYWORD",), "box?": ("BOX",), "port?": ("PORT",),
}  # fmt: skip


@dataclass(frozen=True)
class Inline:
    """A function of the inline text."""

    name: str  # with its quotes, as LLVM writes it
    words: int  # i64 parameters
    text: str

    @cached_property
    def calls(self) -> frozenset[str]:
        return frozenset(_CALLED.findall(self.text))


@cache
def _read(text: str) -> dict[str, Inline]:
    functions = {}
    for found in _FUNCTION.finditer(text):
        name, parameters = found[1], found[2]
        functions[name.strip('"')] = Inline(name, parameters.count("i64 "), found[0])
    return functions


def _predicate(name: str, tags: Iterable[str], layout: Mapping[str, int]) -> str:
    mask = sum(1 << layout[f"TAG_{tag}"] for tag in tags)
    return f"""\
define internal i1 @"test.{name}"(ptr %ctx, i64 %t, i64 %p) alwaysinline {{
  %shifted = lshr i64 {mask}, %t
  %is = trunc i64 %shifted to i1
  ret i1 %is
}}"""


def _simple_predicate(name: str, tag: str) -> str:
    return f"""\
define internal i1 @"test.{name}"(ptr %ctx, i64 %t, i64 %p) alwaysinline {{
  %is = icmp eq i64 %t, $TAG_{tag}
  ret i1 %is
}}"""


# Comparisons of two characters: how LLVM compares their code points, and the C function that refuses what is none.
CHAR_ORDERS = {
    "char=?": ("eq", "esk_char_equal"), "char<?": ("ult", "esk_char_less"), "char>?": ("ugt", "esk_char_greater"),
    "char<=?": ("ule", "esk_char_up_to"), "char>=?": ("uge", "esk_char_from"),
}  # fmt: skip


def _char_order(name: str) -> str:
    relation, refuse = CHAR_ORDERS[name]
    return f"""\
define internal i1 @"test.{name}"({arithmetic.OPERANDS}) alwaysinline {{
  %first = icmp eq i64 %ta, $TAG_CHAR
  %second = icmp eq i64 %tb, $TAG_CHAR
  %both = and i1 %first, %second
  br i1 %both, label %fast, label %slow, !prof !0
fast:
  %holds = icmp {relation} i64 %pa, %pb
  ret i1 %holds
slow:
  %answer = call i64 @{refuse}({arithmetic.OPERANDS})
  %z = icmp ne i64 %answer, 0
  ret i1 %z
}}"""


def _slow(text: str) -> str:
    """The inline functions whose slow paths leave all registers as they are, with the functions that see to that.

    What the runtime is asked for in a slow path must not cost the others: if registers came back changed, values would
    lie in those that procedures have to leave as they are, and be stored before and loaded afterwards on every path.
    """
    asked: dict[str, str] = {}

    def call(found: re.Match[str]) -> str:
        result, function, arguments = found[1], found[2].strip('"'), found[3].split(", ")
        words = [f"{argument.split()[0]} %a{i}" for i, argument in enumerate(arguments[1:])]
        parameters, passed = ", ".join([passing.registers().context, *words]), ", ".join(["ptr %ctx", *words])
        given = "" if result == "void" else "%z = "
        back = "ret void" if result == "void" else f"ret {result} %z"
        asked[function] = (
            f'define internal preserve_mostcc {result} @"slow.{function}"({parameters}) noinline cold {{\n'
            f"  {given}call {result} @{found[2]}({passed})\n  {back}\n}}"
        )
        given_words = ", ".join([passing.registers().context, *arguments[1:]])
        return f'call preserve_mostcc {result} @"slow.{function}"({given_words})'

    if not passing.registers().preserves:
        return text
    changed = _SLOW.sub(call, text)
    return "\n\n".join([changed, *asked.values()])


def _path(letters: str) -> str:
    """What c...r of a pair is, with these letters: step by step from the right."""
    lines = []
    tag, bits = "%t", "%p"
    for step, letter in enumerate(reversed(letters)):
        byte, field = (1, "Pair.car") if letter == "a" else (2, "Pair.cdr")
        lines.append(f"""\
  %pair{step} = icmp eq i64 {tag}, $TAG_PAIR
  br i1 %pair{step}, label %step{step}, label %bad, !prof !0
step{step}:
  %o{step} = inttoptr i64 {bits} to ptr
  %where{step} = getelementptr i8, ptr %o{step}, i64 {byte}
  %byte{step} = load i8, ptr %where{step}
  %tag{step} = zext i8 %byte{step} to i64
  %field{step} = getelementptr i8, ptr %o{step}, i64 ${field}
  %bits{step} = load i64, ptr %field{step}""")
        tag, bits = f"%tag{step}", f"%bits{step}"
    steps = "\n".join(lines)
    return f"""\
define internal %value @"inline.c{letters}r"(ptr %ctx, i64 %t, i64 %p) alwaysinline {{
{steps}
  %a = insertvalue %value undef, i64 {tag}, 0
  %v = insertvalue %value %a, i64 {bits}, 1
  ret %value %v
bad:
  %never = call %value @"prim.c{letters}r"(ptr %ctx, i64 %t, i64 %p) $FAILS
  unreachable
}}"""


def _quick_call(count: int, spill: int) -> str:
    """A call of a procedure that is not the last thing done, for code that is written quickly."""
    arguments = [f"{word}{i}" for i in range(count) for word in ("%t", "%p")]
    words = [passing.registers().context, "ptr %target", f"i64 {count}", *(f"i64 {word}" for word in arguments)]
    words += ["i64 undef"] * (len(passing.entry()) - len(words))
    parameters = ", ".join(["ptr %ctx", "i64 %tf", "i64 %pf", *(f"i64 {word}" for word in arguments)])
    stored = "".join(f"  {line}\n" for line in passing.stored(words, spill, ""))
    return f"""\
define internal %value @"quick.call.{count}"({parameters}) alwaysinline {{
  call void @poll(ptr %ctx)
{_TARGET}\
  %at = getelementptr i8, ptr %target, i64 $Closure.entry
  %entry = load ptr, ptr %at
{stored}\
  %v = call tailcc %value %entry({passing.parameters(words)})
  ret %value %v
}}"""


class PrimitiveTable:
    """Primitives and inline functions, with the numbers of the runtime's layout filled in."""

    def __init__(self, rows: Mapping[str, PrimitiveRow], layout: Mapping[str, int]) -> None:
        self.rows = rows
        self.layout = layout
        self.tags = {name.removeprefix("TAG_"): str(n) for name, n in layout.items() if name.startswith("TAG_")}
        predicates = [
            _simple_predicate(name, tags[0]) if len(tags) == 1 else _predicate(name, tags, layout)
            for name, tags in TAGS_OF_PREDICATES.items()
        ]
        calls = [_quick_call(count, layout["Context.spill"]) for count in range(QUICK_ARGUMENTS + 1)]
        written = [*predicates, *map(_char_order, CHAR_ORDERS)]
        paths = [_path("".join(letters)) for count in (2, 3, 4) for letters in product("ad", repeat=count)]
        text = "\n\n".join([(_FOLDER / "inline.ll").read_text(), arithmetic.functions(), *written, *paths, *calls])
        self.functions = _read(self.filled(_slow(text).replace("$FAILS", FAILS)))

    def filled(self, text: str) -> str:
        """Text with its $names replaced by numbers."""
        return _NUMBER.sub(lambda found: str(self.layout[found[1]]), text)

    def entries(self) -> str:
        """The text of the module of entries."""
        text = (_FOLDER / "entries.ll").read_text().split("\n\n", 1)[1]
        spill = self.layout["Context.spill"]
        begin = "\n".join(f"  {line}" for line in passing.received(passing.entry(), spill))
        text = text.replace("($ENTRY) {", f"({passing.parameters(passing.entry())}) {{\n{begin}")
        text = (
            text.replace("$JUMP", _JUMP)
            .replace("$WORDS", _words(spill))
            .replace("$AGAIN", _again(spill))
            .replace("$CONTEXT", passing.registers().context)
        )
        return self.filled(_PASS.sub(_passed, text))

    def inline(self, name: str, count: int) -> Inline | None:
        """The function that computes a primitive of so many arguments in place."""
        found = self.functions.get(f"inline.{name}")
        return found if found is not None and found.words == 2 * count else None

    def test(self, name: str, count: int) -> Inline | None:
        """The function that answers a predicate in place."""
        found = self.functions.get(f"test.{name}")
        return found if found is not None and found.words == 2 * count else None

    def declared(self, name: str) -> str:
        """The declaration of an inline function that stands in another object."""
        head = self.functions[name].text.split("\n", 1)[0]
        return head.replace("define internal ", "declare ", 1).split(") ", 1)[0] + ")"

    def carried(self, called: Iterable[str]) -> tuple[list[str], set[str]]:
        """The texts of these inline functions and all that they call, and the outside functions those call."""
        texts: list[str] = []
        outside: set[str] = set()
        seen: set[str] = set()
        waiting = list(called)
        while waiting:
            name = waiting.pop().strip('"')
            if name in seen:
                continue
            seen.add(name)
            function = self.functions.get(name)
            if function is None:
                outside.add(name)
            else:
                texts.append(function.text)
                waiting.extend(function.calls)
        return texts, outside
