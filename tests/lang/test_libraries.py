"""Libraries, imports, programs, required files and prompts."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from worlds import Interpreter, MemoryStore

from eshkol.errors import LanguageError
from eshkol.lang.datum import text as piece_text
from eshkol.lang.files import FileSource
from eshkol.lang.imports import choose, parse_import_set, parse_name, spell
from eshkol.lang.reader import read
from eshkol.lang.source import Source
from eshkol.lang.syntax import to_datum
from eshkol.lang.unexpand import unit_data
from eshkol.lang.world import World

BASE = """
(define-library (base)
  (import (eshkol syntax-core) (eshkol primitives))
  (export define define-syntax syntax-rules lambda if let quote quasiquote set! begin cond else include
          cond-expand import let-syntax ... _ + - * list car cdr cons display eq? not))
"""


@pytest.fixture
def base(tmp_path: Path) -> Interpreter:
    """A world with a small standard library, (base), which is the default environment too."""
    standard = tmp_path / "standard"
    standard.mkdir()
    (standard / "base.esk").write_text(BASE)
    return Interpreter(standard, default=("base",))


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / (name.replace("__", "/") + ".esk")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def fails(action: object, *parts: str) -> LanguageError:
    with pytest.raises(LanguageError) as caught:
        action()  # type: ignore[operator]
    for part in parts:
        assert part in str(caught.value), str(caught.value)
    return caught.value


@cache
def fuzzed() -> World:
    """A world without files in which expansion alone is tried."""
    folder = Path(tempfile.mkdtemp())
    (folder / "base.esk").write_text(BASE)
    return Interpreter(folder, default=("base",)).world


# ---- the algebra of import sets --------------------------------------------------------------------------------------

NAMES = ["a", "b", "c", "d", "long-name"]


@st.composite
def import_sets(draw: st.DrawFn) -> tuple[str, dict[str, int]]:
    """An import set as text, and what it should choose of {a: 0, b: 1, ...}."""
    expected = {name: number for number, name in enumerate(NAMES)}
    text = "(lib x 1)"
    for _ in range(draw(st.integers(0, 5))):
        word = draw(st.sampled_from(["only", "except", "prefix", "rename"]))
        some = draw(st.lists(st.sampled_from(sorted(expected)), unique=True)) if expected else []
        if word == "only":
            expected = {name: expected[name] for name in some}
            text = f"(only {text} {' '.join(some)})"
        elif word == "except":
            expected = {name: value for name, value in expected.items() if name not in some}
            text = f"(except {text} {' '.join(some)})"
        elif word == "prefix":
            expected = {f"p-{name}": value for name, value in expected.items()}
            text = f"(prefix {text} p-)"
        else:
            turned = dict(zip(some, some[1:] + some[:1], strict=True))  # all at once: names may change places
            expected = {turned.get(name, name): value for name, value in expected.items()}
            text = f"(rename {text} {' '.join(f'({old} {new})' for old, new in turned.items())})"
    return text, expected


@given(import_sets())
def test_import_sets_are_an_algebra_of_mappings(case: tuple[str, dict[str, int]]) -> None:
    text, expected = case
    imports = parse_import_set(read(Source("t", text))[0])
    assert imports.library == ("lib", "x", 1)
    assert choose(imports, {name: number for number, name in enumerate(NAMES)}) == expected


@given(
    st.lists(st.one_of(st.sampled_from(["foo", "only", "rename", "a b", "+", "1+"]), st.integers(0, 200)), min_size=1)
)
def test_names_of_libraries_are_spelt_as_they_are_read(parts: list[str | int]) -> None:
    name = tuple(parts)
    assert parse_name(read(Source("t", spell(name)))[0]) == name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(only (x) z)", "exports no z"),
        ("(except (x) aa)", "exports no aa"),
        ("(rename (x) (z y))", "exports no z"),
        ("(rename (x) (a b))", "gives that name to two exports"),
        ("(rename (x) a)", "pairs of names"),
        ("(prefix (x) a b)", "one identifier"),
        ("(only (x) 1)", "takes names"),
        ("(x 1.5)", "identifiers and whole numbers"),
        ("()", "a list such as"),
        ("x", "write (x)"),
    ],
)
def test_wrong_import_sets(text: str, message: str) -> None:
    fails(lambda: choose(parse_import_set(read(Source("t", text))[0]), {"a": 1, "b": 2}), message, "t:1:")


def test_a_name_that_is_nearly_exported_is_suggested() -> None:
    action = lambda: choose(parse_import_set(read(Source("t", "(only (x) vector-mpa)"))[0]), {"vector-map": 1})
    fails(action, "did you mean vector-map?")


# ---- define-library --------------------------------------------------------------------------------------------------


def test_libraries_in_one_file(base: Interpreter) -> None:
    program = """
    (define-library (counter) (import (base)) (export (rename up! increment!) value)
      (begin (define value 0) (define (up!) (set! value (+ value 1)))))
    (define-library (twice) (import (base) (prefix (only (counter) increment!) c:)) (export twice!)
      (begin (define (twice!) (c:increment!) (c:increment!))))
    (import (base) (twice) (rename (counter) (value v)))
    (increment!) (display v) (twice!) (display v)
    """
    assert base.program(program) == "1 3"  # importers see what the library changes
    assert base.ran == ["(counter) in <test>", "(twice) in <test>", "program"]


def test_a_library_runs_once(base: Interpreter, tmp_path: Path) -> None:
    write(tmp_path, one='(define-library (one) (import (base)) (export x) (begin (display "one") (define x 1)))')
    write(tmp_path, two="(define-library (two) (import (base) (one)) (export y) (begin (define y (+ x x))))")
    write(tmp_path, main="(import (base) (two) (one)) (display (+ x y))")
    assert base.file(tmp_path / "main.esk") == "one 3"


@pytest.mark.parametrize("suffix", [".esk", ".sld", ".scm"])
def test_files_beside_the_importer(base: Interpreter, tmp_path: Path, suffix: str) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / f"lib{suffix}").write_text(
        "(define-library (er lib) (import (base) (er 1)) (export x) (begin (define x (+ y 1))))"
    )
    library = "(define-library (er 1) (import (base)) (export y) (begin (define y 41)))"
    (tmp_path / "deep" / "er" / "1.esk").write_text(library)  # from where the importing library was found
    write(tmp_path, deep__main="(import (base) (er lib)) (display x)")
    assert base.file(tmp_path / "deep" / "main.esk") == "42"


def test_folders_of_the_path(tmp_path: Path) -> None:
    write(tmp_path, base=BASE, more__x="(define-library (x) (import (base)) (export x) (begin (define x 5)))")
    world = Interpreter(tmp_path, default=("base",))
    world.world.folders.append(tmp_path / "more")
    assert world.program("(import (base) (x)) (display x)") == "5"


def test_include_and_its_kin(base: Interpreter, tmp_path: Path) -> None:
    write(
        tmp_path,
        lib="""(define-library (lib) (include-library-declarations "parts/declarations.esk")
                 (include "parts/one.esk" "parts/two.esk") (include-ci "parts/three.esk"))""",
        parts__declarations="(export one two three) (import (base))",
        parts__one='(define one 1) (include "inner/deep.esk")',
        parts__inner__deep="(define deep 10)",
        parts__two="(define two (+ one deep))",
        parts__three="(DEFINE Three (+ ONE Two))",
        main='(import (base) (lib)) (define (f) (include "parts/inner/deep.esk") (+ deep three)) (display (f))',
    )
    assert base.file(tmp_path / "main.esk") == "22"
    fails(lambda: base.file(_file(tmp_path, '(include "no.esk")')), "cannot read", "no.esk", "^~~~~~~~")
    write(tmp_path, a='(include "b.esk")', b='(define x 1) (include "a.esk")')
    fails(lambda: base.file(_file(tmp_path, '(include "a.esk")')), "includes itself")
    fails(lambda: base.file(_file(tmp_path, "(include x)")), "names of files as strings")


def _file(folder: Path, text: str) -> Path:
    path = folder / "program.esk"
    path.write_text(text)
    return path


def test_cond_expand(base: Interpreter, tmp_path: Path) -> None:
    write(tmp_path, there="(define-library (there) (export))")
    program = """
    (cond-expand ((and r7rs (library (there))) (import (base))) (else (import (not there))))
    (cond-expand ((library (not there)) (define x 1)) ((not (or full-unicode no)) (define x 2)) (else (define x 3)))
    (display x)
    (display (cond-expand (nothing 1) (eshkol 2 (+ x 1))))
    (define-library (l) (cond-expand ((not nothing) (import (base)) (export y) (begin (define y 9))) (else 1)))
    (import (l)) (display y)
    """
    assert base.file(_file(tmp_path, program)) == "3 4 9"
    fails(lambda: base.program("(cond-expand ((xor a b) 1))"), "no feature requirement: (xor a b)")
    fails(lambda: base.program("(cond-expand (else 1) (eshkol 2))"), "else must be the last")


# ---- errors ----------------------------------------------------------------------------------------------------------


def test_cycles_are_printed(base: Interpreter, tmp_path: Path) -> None:
    for name, other in (("a", "b"), ("b", "c"), ("c", "a")):
        write(tmp_path, **{name: f"(define-library ({name}) (import (base) ({other})) (export))"})
    write(tmp_path, main="(import (a))", self="(define-library (self) (import (self)))")
    error = fails(lambda: base.file(tmp_path / "main.esk"), "(a) → (b) → (c) → (a)", "(a) imports (b) here")
    assert error.span is not None
    assert error.span.file.endswith("c.esk")
    fails(lambda: base.file(_file(tmp_path, "(import (self))")), "(self) imports itself")
    assert base.program("(display 1)") == "1"  # nothing is left half loaded


def test_what_is_missing_is_named(base: Interpreter, tmp_path: Path) -> None:
    fails(
        lambda: base.file(_file(tmp_path, "(import (no such))")), "no library (no such)", "no/such.esk", "no/such.sld"
    )
    fails(lambda: base.program("(import (bsae))"), "did you mean (base)?")
    write(tmp_path, other="(define-library (another) (export))", empty="(define x 1)")
    fails(
        lambda: base.file(_file(tmp_path, "(import (other))")), "should be the library (other), but defines (another)"
    )
    fails(lambda: base.file(_file(tmp_path, "(import (empty))")), "no define-library")
    fails(lambda: base.program("(define-library (l) (export x)) (import (l))"), "neither defines nor imports")
    program = "(define-library (l) (import (base)) (export size-of) (begin (define sizeof 1))) (import (l))"
    fails(lambda: base.program(program), "exports size-of", "did you mean sizeof?", "<test>:1:")
    fails(lambda: base.program("(import (../x))"), "no library")
    fails(lambda: base.program("(define-library (l) (define x 1)) (import (l))"), "inside (begin ...)")
    fails(lambda: base.program("(define-library (l) (expotr x)) (import (l))"), "did you mean export?")
    fails(lambda: base.program("(define-library (l)) (define-library (l)) (import (l))"), "defined twice in this file")


def test_a_file_that_cannot_be_read(base: Interpreter, tmp_path: Path) -> None:
    (tmp_path / "bad.esk").write_bytes(b"(define x 1)\n\xff")
    fails(lambda: base.file(tmp_path / "bad.esk"), "not UTF-8", "line 2", "0xff")
    (tmp_path / "bom.esk").write_bytes("\ufeff(display 1)".encode())
    assert base.file(tmp_path / "bom.esk") == "1"


def test_conflicts_name_both_libraries(base: Interpreter) -> None:
    libraries = """
    (define-library (a) (import (base)) (export x y) (begin (define x 1) (define y 1)))
    (define-library (b) (import (base) (a)) (export x y (rename z w)) (begin (define z 2)))
    (define-library (c) (import (base)) (export x) (begin (define x 3)))
    """
    assert base.program(libraries + "(import (base) (a) (b)) (display (+ x w))") == "3"  # one binding, two ways
    error = fails(lambda: base.program(libraries + "(import (base) (a) (c)) (display x)"), "from (a)", "from (c)")
    assert error.notes
    assert base.program(libraries + "(import (base) (a) (prefix (c) c-)) (display (list x c-x))") == "(1 3)"


def test_a_library_does_not_define_what_it_imports(base: Interpreter) -> None:
    program = "(define-library (l) (import (base)) (export) (begin (define (list . x) x))) (import (l))"
    fails(lambda: base.program(program), "list is imported from (base), and defined in this library too", "except")
    assert base.program("(import (base)) (define (list . x) (cons 0 x)) (display (list 1))") == "(0 1)"
    assert base.program("(define (list . x) (cons 0 x)) (display (list 1))") == "(0 1)"


def test_a_program_sees_only_what_it_imports(base: Interpreter) -> None:
    fails(
        lambda: base.program("(import (only (base) display)) (display (car 1))"),
        "`car` is not defined",
        "(import (base)) brings it",
    )


# ---- macros of libraries ---------------------------------------------------------------------------------------------

MACROS = """
(define-library (macros) (import (base)) (export swap! counted while-true (rename inner outer) define-getter broken)
  (begin
    (define count 0)
    (define (note! x) (set! count (+ count 1)) (list count x))
    (define-syntax helper (syntax-rules () ((_ x) (note! x))))
    (define-syntax counted (syntax-rules () ((_ x) (helper x))))
    (define-syntax swap! (syntax-rules () ((_ a b) (let ((tmp a)) (set! a b) (set! b tmp)))))
    (define-syntax while-true (syntax-rules (stop) ((_ stop x) x) ((_ y x) (cond (y x) (else 'no)))))
    (define-syntax inner (syntax-rules () ((_ x #(a ...) "s" 1.5 #\\a) (list x 'a ...))))
    (define-syntax broken (syntax-rules () ((_ x) (let ((y x)) (car y nothing)))))
    (define-syntax define-getter
      (syntax-rules () ((_ name value) (define-syntax name (syntax-rules () ((_ x (... ...)) (note! value)))))))))
"""
USES = """
(import (base) (macros))
(define tmp 1) (define other 2) (define note! 5) (define count 7) (define if 3)
(swap! tmp other)
(define-getter get (+ tmp 1))
(display (list tmp other (counted 'a) (counted 'b) (while-true stop 1) (while-true (eq? 1 2) 3) (get)
               (outer 1 #(x y) "s" 1.5 #\\a)))
"""
EXPECTED = "(2 1 (1 a) (2 b) 1 no (3 3) (1 x y))"


def test_macros_use_private_bindings(base: Interpreter, tmp_path: Path) -> None:
    write(tmp_path, macros=MACROS, main=USES)
    assert base.file(tmp_path / "main.esk") == EXPECTED


def world_of(tmp_path: Path, store: MemoryStore) -> Interpreter:
    write(tmp_path, standard__base=BASE)
    return Interpreter(tmp_path / "standard", store, default=("base",))


def test_summaries_give_the_same_expansion(tmp_path: Path) -> None:
    write(tmp_path, macros=MACROS, main=USES)
    store = MemoryStore()
    first = world_of(tmp_path, store)
    assert first.file(tmp_path / "main.esk") == EXPECTED
    second = world_of(tmp_path, store)
    assert second.world.library(("macros",), second.world.contents(tmp_path / "main.esk")).exports.keys() == {
        "swap!", "counted", "while-true", "outer", "define-getter", "broken",
    }  # fmt: skip
    (tmp_path / "main.esk").write_text(USES + " ")  # the program is new, the library is not
    module = second.world.program(_source(tmp_path / "main.esk"))
    library = module.imports[1]
    assert library.label == "(macros)"
    written = [unit_data(unit) for unit in (module.unit, first.world.program(_source(tmp_path / "main.esk")).unit)]
    assert written[0] == written[1]
    assert library._expanded is None  # type: ignore[attr-defined]
    assert second.file(tmp_path / "main.esk") == EXPECTED


def _source(path: Path) -> FileSource:
    from eshkol.lang.files import read_source

    return read_source(path)


def test_errors_in_macros_of_summaries_show_the_same_places(tmp_path: Path) -> None:
    write(tmp_path, macros=MACROS, main=USES, wrong="(import (base) (macros)) (display (broken 1))")
    store = MemoryStore()
    shown = []
    for _ in range(2):
        world = world_of(tmp_path, store)
        world.world.program(_source(tmp_path / "main.esk")).unit  # noqa: B018
        shown.append(str(fails(lambda world=world: world.file(tmp_path / "wrong.esk"))))
    assert shown[0] == shown[1]
    assert "macros.esk" in shown[0]


def test_nothing_is_expanded_when_nothing_changed(tmp_path: Path) -> None:
    write(tmp_path, macros=MACROS, main=USES, part="(define x 1)")
    write(tmp_path, lib='(define-library (lib) (import (base)) (export x) (include "part.esk"))')
    write(
        tmp_path, user="(import (base) (macros) (lib)) (cond-expand ((library (none)) (display 0)) (else (display x)))"
    )
    store = MemoryStore()

    def keys() -> tuple[list[str], list[bool]]:
        world = world_of(tmp_path, store)
        modules = world.world.in_order(world.world.program(_source(tmp_path / "user.esk")))
        found = [module.key for module in modules]
        return found, [module._expanded is not None for module in modules]  # type: ignore[attr-defined]

    before, expanded = keys()
    assert all(expanded)
    again, expanded = keys()
    assert again == before
    assert not any(expanded)
    write(tmp_path, part="(define x 2)")
    changed, expanded = keys()
    assert [a == b for a, b in zip(before, changed, strict=True)] == [True, False, False]
    assert expanded == [False, True, True]
    write(tmp_path, none="(define-library (none) (export))")
    assert keys()[0][-1] != changed[-1]


def test_a_store_with_nonsense_in_it_is_not_believed(tmp_path: Path) -> None:
    write(tmp_path, macros=MACROS, main=USES)
    store = MemoryStore()
    world_of(tmp_path, store).file(tmp_path / "main.esk")
    damages = (lambda entry: b'{"key": 1}\nnonsense', lambda entry: entry.partition(b"\n")[0] + b'\n{"exports": 1}')
    for damage in damages:
        store.entries = {key: damage(entry) for key, entry in store.entries.items()}
        assert world_of(tmp_path, store).file(tmp_path / "main.esk") == EXPECTED


# ---- require, provide, module ----------------------------------------------------------------------------------------


def test_require_and_provide(base: Interpreter, tmp_path: Path) -> None:
    write(
        tmp_path,
        util__shapes="(provide area (rename private public)) (define (area w h) (* w h)) (define private 7)",
        util__all='(require "shapes.esk") (provide (all-defined)) (define (double x) (area 2 x)) '
        "(define-syntax two (syntax-rules () ((_) 2)))",
        lib="(define-library (lib) (import (base)) (export five) (begin (define five 5)))",
        main='(require stdlib "util/all.esk" (prefix (only "util/shapes" public) s-) "lib.esk" util.shapes) '
        "(display (list (double 4) s-public five (two) (area 1 2)))",
    )
    assert base.file(tmp_path / "main.esk") == "(8 7 5 2 2)"
    fails(lambda: base.file(_file(tmp_path, '(require "util/nothing.esk")')), "no file util/nothing.esk", "looked for")
    fails(lambda: base.file(_file(tmp_path, "(require nothing)")), "nothing to require as nothing")
    fails(lambda: base.file(_file(tmp_path, '(require "util/shapes.esk") (display private)')), "`private`")
    write(tmp_path, circle='(require "circle.esk")')
    fails(lambda: base.file(tmp_path / "circle.esk"), "imports itself")


def test_modules_in_place(base: Interpreter) -> None:
    program = """
    (module stack (push! (rename top peek))
      (define items '())
      (define (push! x) (set! items (cons x items)))
      (define (top) (car items)))
    (module more all-defined (import (base)) (define a 1) (define b 2))
    (define items 5)
    (push! 3)
    (display (list (peek) items a b))
    """
    assert base.program(program) == "(3 5 1 2)"
    fails(lambda: base.program("(module m (x) (define y 1))"), "exports x")
    fails(lambda: base.program("(define x 1) (module m (y) (define y x))"), "`x` is not defined")


def test_words_of_declarations_may_be_names(base: Interpreter) -> None:
    assert base.program("(define (require x) (* x 2)) (display (require 4))") == "8"
    fails(lambda: base.program("(let ((x 1)) (import (base)) x)"), "import belongs at the top level")


# ---- prompts ---------------------------------------------------------------------------------------------------------


def test_a_prompt(base: Interpreter) -> None:
    prompt = base.world.interaction()
    show = lambda form: base.type_in(prompt, form)
    assert show("(define (f) (g 1))") == "#!unspecified"
    assert show("(define (g x) (+ x 1)) (f)") == "2"
    assert show("(define (g x) (* x 10)) (f)") == "10"
    assert show("(define (list . x) 'mine) (list 1)") == "mine"
    assert show("(import (only (base) list)) (list 1)") == "(1)"
    assert show("(define-library (l) (import (base)) (export x) (begin (define x 1)))") == ""
    assert show("(import (l)) x") == "1"
    assert show("(define-library (l) (import (base)) (export x) (begin (define x 2)))") == ""
    assert show("x") == "1"
    assert show("(import (l)) x") == "2"
    assert show("(define x 3) (set! x (+ x 1)) x") == "4"
    assert show("(module m (y) (define y 'm)) y") == "m"
    assert show("(begin (import (prefix (base) b:)) (b:car '(1)))") == "1"
    fails(lambda: show("(provide x)"), "there is no file here")
    fails(lambda: show("(define-library (z) (import (y)))  (import (z))"), "no library (y)")


def test_environments_and_eval(base: Interpreter) -> None:
    make = "((%compile '(+ x 1) (%environment '((base) (rename (only (vars) v) (v x))))))"
    program = f"""
    (define-library (vars) (import (base)) (export v) (begin (define v 41)))
    (import (eshkol primitives) (base)) (display {make})
    """
    fails(lambda: base.program(program), "no library (vars)")  # it is in that file only
    program = "(import (eshkol primitives) (base)) (display ((%compile '(car '(1 2)) (%environment '((base))))))"
    assert base.program(program) == "1"
    fails(lambda: base.program(program.replace("(car '(1 2))", "(if)")), "if")
    program = "(import (eshkol primitives) (base)) (display (%expand '(let ((x 1)) (+ x 1)) (interaction-environment)))"
    assert base.program(program) == "(let ((x 1)) (+ x 1))"


def test_load(base: Interpreter, tmp_path: Path) -> None:
    write(tmp_path, loaded="(define x 4) (define-syntax m (syntax-rules () ((_) (* x x)))) (display (m))")
    program = f"""
    (import (eshkol primitives) (base) (eshkol syntax-core))
    (let ((number (%load-open "{tmp_path / "loaded.esk"}" (interaction-environment))))
      (let loop ((next (%load-next number))) (if next (begin (next) (loop (%load-next number))))))
    """
    assert base.program(program) == "16"


def test_many_libraries_in_a_row(base: Interpreter, tmp_path: Path) -> None:
    count = 300
    for number in range(count):
        renamed, value = (f"(rename (l {number + 1}) (x y))", "(+ 1 y)") if number + 1 < count else ("", "1")
        library = f"(define-library (l {number}) (import (base) {renamed}) (export x) (begin (define x {value})))"
        write(tmp_path, **{f"l__{number}": library})
    assert base.file(_file(tmp_path, "(import (base) (l 0)) (display x)")) == str(count)


# ---- any input gives a result, or an error that says what is wrong ---------------------------------------------------

WORDS = """define-library import export begin include cond-expand library and or not else only except prefix rename
(base) (l) (m) l x y "x.esk" 1 -1 1.5 #t () (x y) (rename x y) (rename (x y)) require provide module all-defined stdlib
define lambda if display (define x 1) (define (y) x) (define-syntax x (syntax-rules () ((_ a) a))) "\\x0;" #(1)
include-library-declarations (define-library (l) (import (base)) (export x) (begin (define x 1)))"""
ATOMS = st.sampled_from([*(piece_text(to_datum(piece)) for piece in read(Source("t", WORDS))), "."])
FORMS = st.recursive(ATOMS, lambda inner: st.lists(inner, max_size=4).map(lambda i: f"({' '.join(i)})"), max_leaves=12)


@given(st.lists(FORMS, max_size=5), st.booleans())
def test_nonsense(forms: list[str], at_prompt: bool) -> None:
    world = fuzzed()
    text = " ".join(forms)
    try:
        if at_prompt:
            for form in forms:
                list(world.interaction().units(Source("<prompt>", form)))
        else:
            module = world.program(Source("<program>", text))
            assert module.unit is not None
            unit_data(module.unit)
    except LanguageError as error:
        str(error)


def test_deep_nonsense() -> None:
    world = fuzzed()
    deep, longest = 5_000, 0
    for text in (
        f"(import {'(only ' * deep}(base){')' * deep})",
        f"(cond-expand ({'(not ' * deep}x{')' * deep} 1))",
        f"(define-library (l) {'(cond-expand (else ' * deep}{'))' * deep})(import (l))",
        f"(import ({'a ' * deep}))",
        "(import " + "(base) " * 2000 + ")",
    ):
        try:
            world.program(Source("<deep>", text)).unit  # noqa: B018
        except LanguageError as error:
            longest = max(longest, len(str(error)))
    assert longest < 5_000
