"""The page of the standard library, `docs/library.md`, written from doc strings and from the rows of the primitives.

python -m eshkol.lang.docs docs
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from eshkol.lang.datum import text
from eshkol.lang.files import STANDARD, read_source
from eshkol.lang.form_docs import FORM_DOCS
from eshkol.lang.reader import read
from eshkol.lang.syntax import Syntax, to_datum
from eshkol.runtime.scheme_table import rows

TENSORS = tuple(
    f"tensors/{name}" for name in ("values", "maps", "random", "images", "devices", "compilation", "gpu")
)  # rows: docs/ops.md
LEARNING = tuple(f"learning/{name}" for name in ("layers", "models", "optimizers", "training", "metrics"))
CALCULUS = ("calculus", "calculus/custom", "calculus/checkpoints", "calculus/graph", "symbolic")
IMPLEMENTED = (
    "control", "syntax", "lists", "sequences", "tables", "system", "notebook", "python", *CALCULUS, *TENSORS,
    "ahead", *LEARNING, "data", "checkpoints", "serialization",
    "profiling", "parallel", "threads",
)  # fmt: skip
APART = ("compat", "plot", "testing")  # libraries that programs import by name, above (eshkol)
SRFI = ("1", "69", "133")
# libraries that programs import by name, and that are compiled when one does so for the first time
FURTHER = (
    *(f"eshkol/{name}" for name in (
        "json", "csv", "files", "processes", "network", "http", "encodings", "digests", "keywords", "interpolation",
        "structures", "contracts", "generators",
    )),
    "eshkol/match", "eshkol/format", "eshkol/strings", "eshkol/show", "eshkol/outcomes",
    "eshkol/arguments", "eshkol/regexps/programs", "scheme/rlist",
    *(f"srfi/{number}" for number in (
        2, 6, 8, 9, 11, 13, 14, 16, 18, 19, 23, 26, 27, 28, 31, 34, 39, 41, 43, 48, 64, 87, 95, 98, 101, 111, 113, 115,
        116, 117, 121, 124, 125, 127, 128, 130, 132, 134, 135, 141, 145, 151, 152, 158, 166,
    )),
)  # fmt: skip
RED_EDITION = {  # names of R7RS-large, and the SRFI that each stands for; (scheme rlist) has names of its own
    "bitwise": 151, "box": 111, "charset": 14, "comparator": 128, "division": 141, "ephemeron": 124, "generator": 158,
    "hash-table": 125, "ideque": 134, "ilist": 116, "list": 1, "list-queue": 117, "lseq": 127, "regex": 115,
    "set": 113, "sort": 132, "stream": 41, "text": 135, "vector": 133,
}  # fmt: skip


@dataclass(frozen=True)
class Definition:
    """A procedure of the library: how it is called, in every way, and what it does."""

    name: str
    calls: tuple[str, ...]
    doc: str | None


@dataclass(frozen=True)
class Library:
    """A file of the library, as far as a reader of the page wants to know it."""

    name: str
    summary: str
    exports: tuple[str, ...]
    definitions: dict[str, Definition]


def library(path: Path) -> Library:
    """What the file that holds one define-library says."""
    source = read_source(path)
    (form,) = read(source)
    declarations = [*_declared((form.items or ())[2:], path.parent)]
    exports = tuple(name for part in _parts(declarations, "export") for name in _exported(part))
    forms = [*_parts(declarations, "begin"), *_included(declarations, path.parent)]
    found = {made.name: made for form_ in forms for made in _definition(form_)}
    comment = [line.removeprefix(";;;").strip() for line in source.text.split("\n\n")[0].splitlines()]
    summary = " ".join(comment[: comment.index("")] if "" in comment else comment)
    return Library(text(to_datum((form.items or ())[1])), summary, exports, found)


def _declared(declarations: Iterable[Syntax], folder: Path) -> Iterator[Syntax]:
    """The declarations, with those of included files."""
    for declaration in declarations:
        if declaration.head is not None and declaration.head.name == "include-library-declarations":
            for file in (declaration.items or ())[1:]:
                yield from read(read_source(folder / str(file.content)))
        else:
            yield declaration


def _included(declarations: Iterable[Syntax], folder: Path) -> Iterator[Syntax]:
    """The definitions that stand in files of their own."""
    for file in _parts(declarations, "include"):
        yield from read(read_source(folder / str(file.content)))


def _parts(declarations: Iterable[Syntax], word: str) -> Iterator[Syntax]:
    for declaration in declarations:
        if declaration.head is not None and declaration.head.name == word:
            yield from (declaration.items or ())[1:]


def _exported(part: Syntax) -> Iterator[str]:
    items = part.items
    yield items[2].name if items else part.name


def _definition(form: Syntax) -> Iterator[Definition]:
    items = form.items or ()
    if form.head is None or len(items) < 3:
        return
    if form.head.name == "define-syntax":
        comment = _comment_above(form)
        if comment is not None and comment.startswith(f"({items[1].name}"):
            yield _described(items[1].name, comment)
        elif items[2].head is not None and items[2].head.name == "syntax-rules":
            yield Definition(items[1].name, _uses(items[1].name, items[2]), comment)
        else:
            yield _described(items[1].name, comment)
        return
    if form.head.name == "define-record-type" and len(items) > 3 and items[1].is_identifier:
        predicate = items[3].name
        yield Definition(predicate, (f"({predicate} object)",), f"Whether object is a {items[1].name}.")
        for field in items[4:]:
            yield from _field(items[1].name, [part.name for part in field.items or () if part.is_identifier])
    if form.head.name not in ("define", "define*"):
        return
    if not items[1].is_identifier:  # (define (name parameter ...) doc body ...)
        call = re.sub(r"\(quote (\S+?)\)", r"'\1", text(to_datum(items[1])))
        yield Definition(call.strip("()").split()[0], (call,), _doc(items[2:]))
        return
    value = items[2].items or ()
    if items[2].head is not None and items[2].head.name == "case-lambda":
        clauses = [clause.items or () for clause in value[1:]]
        calls = tuple(_call(items[1].name, clause[0]) for clause in clauses)
        yield Definition(items[1].name, calls, next((doc for clause in clauses if (doc := _doc(clause[1:]))), None))
    elif items[2].is_identifier:
        yield Definition(items[1].name, (items[1].name,), f"The same as `{items[2].name}`.")
    else:
        yield _described(items[1].name, _comment_above(form))


def _field(record: str, names: list[str]) -> Iterator[Definition]:
    """The accessor and the modifier of a field of a record type."""
    for name, call, doc in zip(
        names[1:],
        ("({} record)", "({} record object)"),
        (f"The {names[0]} of a {record}.", f"Make object the {names[0]} of a {record}."),
        strict=False,
    ):
        yield Definition(name, (call.format(name),), doc)


def _described(name: str, comment: str | None) -> Definition:
    """A definition whose comment may begin with how it is called: `(name argument [option]): what it does`."""
    call, colon, doc = (comment or "").partition("): ")
    if colon and call.startswith(f"({name}"):
        return Definition(name, (f"{call})",), doc[:1].upper() + doc[1:])
    return Definition(name, (name,), comment)


def _uses(name: str, rules: Syntax) -> tuple[str, ...]:
    """The patterns of a syntax-rules, with the name of the form in front; not those that only complain."""
    uses = []
    for rule in (rules.items or ())[2:]:
        pattern, template = (rule.items or ())[:2]
        if template.head is None or template.head.name != "syntax-error":
            uses.append(text(to_datum(pattern)).replace("_", name, 1))
    return tuple(uses)


def _comment_above(form: Syntax) -> str | None:
    """The lines of comment that stand directly above a form, as one text."""
    assert form.place is not None
    found: list[str] = []
    for line in reversed(form.place.source.text[: form.place.start].rstrip(" ").splitlines()):
        if not line.strip().startswith(";; "):
            break
        found.insert(0, line.strip().removeprefix(";; "))
    return " ".join(found) or None


def _call(name: str, parameters: Syntax) -> str:
    if parameters.is_identifier:
        return f"({name} . {parameters.name})"
    inside = text(to_datum(parameters)).removeprefix("(").removesuffix(")")
    return f"({name} {inside})" if inside else f"({name})"


def _doc(body: Iterable[Syntax]) -> str | None:
    first, *rest = body
    return first.content if rest and isinstance(first.content, str) else None


def find_definition(name: str) -> Definition | None:
    """What is said of a form, or of a name that the standard library defines."""
    if name in FORM_DOCS:
        return Definition(name, *FORM_DOCS[name])
    places = [STANDARD / "eshkol" / f"{part}.esk" for part in (*IMPLEMENTED, *APART)]
    places += [STANDARD / "srfi" / f"{number}.esk" for number in SRFI]
    places += [STANDARD / f"{name}.esk" for name in FURTHER]
    return next((found for path in places if (found := library(path).definitions.get(name))), None)


def library_page() -> str:
    """The page."""
    lines = [
        "# The standard library",
        "",
        "This page is derived from the library (`src/eshkol/lib/`) and from the rows of the runtime's primitives by",
        "`make generate`. A program that imports nothing has `(eshkol)`, which is the libraries up to `(srfi 133)` but",
        "`(eshkol compat)` and `(eshkol plot)`; those behind it are imported by name, and compiled when that is done",
        "for the first time. In the signatures of the runtime `[x]` may be left out and `x ...` stands for any number",
        "of arguments; in those of the library `. x` does, and what is written `(x 1)` or `(:x 1)` may be left out.",
        "",
        "## Forms",
        "",
        "Known to the expander itself:",
        "",
        "| form | meaning |",
        "|---|---|",
        *(_row(uses, meaning) for uses, meaning in FORM_DOCS.values()),
    ]
    for name in (*IMPLEMENTED, *APART):
        lines += _section(library(STANDARD / "eshkol" / f"{name}.esk"))
    for name in SRFI:
        lines += _section(library(STANDARD / "srfi" / f"{name}.esk"))
    for name in FURTHER:
        lines += _section(library(STANDARD / f"{name}.esk"))
    lines += ["", "## The runtime", "", "| call | meaning |", "|---|---|"]
    public = sorted((row for row in rows().values() if not row.name.startswith("%")), key=lambda row: row.name)
    lines += [_row([row.signature], row.doc) for row in public]
    lines += ["", "## The libraries of R7RS", "", "| library | exports |", "|---|---|"]
    for path in sorted((STANDARD / "scheme").glob("*.esk")):
        found = library(path)
        same = RED_EDITION.get(path.stem)
        lines.append(f"| `{found.name}` | {_names(found.exports) if same is None else f'those of `(srfi {same})`'} |")
    return "\n".join(lines) + "\n"


def _section(found: Library) -> list[str]:
    public = [name for name in found.exports if not name.startswith("%")]
    if not public:
        return []
    defined = [found.definitions[name] for name in public if name in found.definitions]
    others = [name for name in public if name not in found.definitions]
    lines = ["", f"## {found.name}", "", found.summary]
    if defined:
        lines += ["", "| call | meaning |", "|---|---|"]
        lines += [_row(made.calls, made.doc or "") for made in defined]
    if others:
        lines += ["", f"{'Also' if defined else 'Has'} {_names(others)}."]
    return lines


def _row(calls: Iterable[str], meaning: str) -> str:
    shown = "<br>".join(f"`` {call} ``" if "`" in call else f"`{call}`" for call in calls)
    return f"| {shown} | {meaning} |".replace("||", "\\|\\|")


def _names(names: Iterable[str]) -> str:
    return " ".join(f"`{name}`" for name in names)


PAGES = {"library.md": library_page}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (Path(sys.argv[1]) / name).write_text(page(), encoding="utf-8")
