"""How programs are laid out: nothing but white space changes, what came out stays as it is, and it looks well."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import amount, examples
from eshkol.errors import EshkolError, ReadError
from eshkol.lang.datum import text as written
from eshkol.lang.formatting import formatted as module
from eshkol.lang.formatting.formatted import contents, formatted
from eshkol.lang.formatting.rules import RULES, WIDTH
from eshkol.lang.reader import read
from eshkol.lang.source import Source
from eshkol.runtime.tokens import tokenize

ROOT = Path(__file__).parents[2]
FOLDERS = ("src/eshkol/lib", "examples", "bench", "tests/scheme")


def laid_out(text: str) -> str:
    return formatted(Source("<test>", text))


def data(text: str) -> list[str]:
    """What the reader makes of a text: the other way to see that a program is the same."""
    return [written(datum) for datum in read(Source("<test>", text))]


def check(text: str) -> str:
    """Lay a text out, and see that it is the same program, and stays as it is; what came out."""
    out = laid_out(text)
    assert data(out) == data(text)
    assert contents(out, tokenize(out)[0]) == contents(text, tokenize(text)[0])
    assert laid_out(out) == out
    return out


# ---- programs at random --------------------------------------------------------------------------------------------

ATOMS = (
    "x", "list", ":key", ":", "...", "=>", "else", "_", "-1.5e3", "#xFF", "1/2", "#t", "#false", "#\\a", "#\\space",
    "#\\;", "#\\(", '"text"', '"a ; \\" b"', '"two\nlines"', "|a b|", "|a\nb|", "#u8(1 2)", "@x", "+inf.0",
    "()", "[]", "a-rather-long-name-of-a-variable-that-fills-lines", '"' + "long " * 20 + '"',
)  # fmt: skip
HEADS = (*RULES, "f", "define-thing", "with-thing", "export", "while", "a-procedure-with-a-long-name")
SPACES = (" ", " ", " ", " ", "\n", "\n", "\n  ", "  \n\n\n\n", "\t", "\r\n", "\n       ")
COMMENTS = (
    " ; note\n", "\n;; own line\n", "   ;;; far\n\n", " #| block |# ", "\n#| two\n   lines |#\n", " #|a #| b |# c|#",
    " #;x ", "\n#;(f\n y)\n", " #!fold-case ", ";=> 5\n", "\n;; indent: f 1\n", " #;#;a b ",
)  # fmt: skip
PREFIXES = ("'", "`", ",", ",@", "#'", "#`", "#,", "#;a '", "' ", ", ", "' ; why\n", "`#|so|#", ",\n")
gaps = st.lists(st.sampled_from(SPACES) | st.sampled_from(COMMENTS), min_size=1, max_size=2).map(
    "".join
) | st.sampled_from(SPACES)


atoms = st.sampled_from(ATOMS)


@st.composite
def lists(draw: st.DrawFn, inside: st.SearchStrategy[str]) -> str:
    items = draw(st.lists(inside, max_size=6))
    if draw(st.booleans()):
        items = [draw(st.sampled_from(HEADS)), *items]
    opener, close = draw(st.sampled_from([("(", ")"), ("(", ")"), ("[", "]"), ("#(", ")")]))
    pieces = [draw(st.sampled_from(["", "", "", " ", "\n ", "; first\n", "#|x|#"]))]
    for item in items:
        pieces += (item, draw(gaps))
    if opener == "(" and items and draw(st.integers(0, 9)) == 0:
        pieces += (" ", draw(atoms), draw(gaps), " . ", draw(atoms), draw(st.sampled_from(SPACES)))
    return opener + "".join(pieces) + close


forms = st.recursive(
    atoms,
    lambda inside: lists(inside) | st.tuples(st.sampled_from(PREFIXES), inside).map("".join),
    max_leaves=40,
)
programs = st.lists(st.tuples(forms, gaps).map("".join), max_size=5).map("".join)


@examples(2000, 100)
@given(programs)
def test_any_program_stays_the_same(text: str) -> None:
    check(text)


FLAT = st.recursive(
    st.sampled_from(["x", "value", "(f x)", '"text"', ":key", "12", "'(a b)"]),
    lambda inside: st.tuples(st.sampled_from(HEADS), st.lists(inside, min_size=1, max_size=6)).map(
        lambda parts: f"({parts[0]} {' '.join(parts[1])})"
    ),
    max_leaves=60,
)


@examples(1000, 150)
@given(FLAT)
def test_long_lines_are_broken(text: str) -> None:
    """All of it in one line: every line that comes out is short, but for what cannot be broken there."""
    out = check(text)
    assert len(text) > WIDTH or out == text + "\n"
    deep = WIDTH // 2
    for line in out.splitlines():
        assert len(line) <= WIDTH or len(line) - len(line.lstrip()) > deep or line.count("(") < 4 or "(do " in line, out


def test_the_files_of_the_project() -> None:
    """They keep their meaning, and most of their lines as they are."""
    changed = lines = 0
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.esk"))[:: amount(1, 4)]:
            text = path.read_text("utf-8")
            before, after = text.splitlines(), check(text).splitlines()
            lines += len(before)
            changed += len(set(before) - set(after))
    assert lines > amount(15_000, 3_000)
    assert changed < lines / 30


# ---- how it looks --------------------------------------------------------------------------------------------------

SAME = """\
#!/usr/bin/env eshkol
;;; A header.

(define (f x)   ; what it does
  "Its documentation."
  (let ((y 1)   ; one
        (z 22)) ; two
    (if (= x y)
        (g x)
        z)))


(define-syntax while
  (syntax-rules ()
    ((_ test body ...)
     (let loop ()
       (when test
         body ...
         (loop))))))

(define-syntax swap!
  (syntax-rules ::: ()
    ((_ a b)
     (swap a b))))

(while (< i 10)
  (set! i (+ i 1)))

(cond ((f x) => g)
      ((null? x)
       ;; nothing
       (h))
      (else (k)))

(case x
  ((a b) 1)
  (else 2))

(do ((i 0 (+ i 1)))
    ((= i 10) result)
  (display i) (newline))

(guard (e ((string? e) e)
          (else (raise e)))
  (fail))

(call/cc
 (lambda (k)
   (k 1)))

(unknown-macro name
  body)

'(a b
  c)

'(alist (one . 1)
        (two . 2))

`(let ((x ,y))
   ,@(map f
          z))

(define table
  #(1 2
    3))

(begin (f)
       (g))

(define-record-type point
  (make-point x y) point?
  (x point-x))

(f #| why |# x #;(not this)
             y)
"""
CHANGED = {
    "": "",
    "\n\n  x  \n\n\n\n\ny": "x\n\n\ny\n",
    "(a\n)": "(a)\n",
    "( a  b )": "(a b)\n",
    "(a ; c\n)": "(a ; c\n )\n",
    "(define\n  (f x)\n      x)": "(define (f x)\n  x)\n",
    "(define (f x) (g\n x))": "(define (f x)\n  (g\n   x))\n",
    "(f a\nb\n\n\n\nc)": "(f a\n   b\n\n   c)\n",
    "(let ((a 1)\n(b 2)) (f a) (g b))": "(let ((a 1)\n      (b 2))\n  (f a) (g b))\n",
    "(for-each (lambda (x)\n(f x)) l)": "(for-each (lambda (x)\n            (f x))\n          l)\n",
    "(f x) (g\ny) (h z)": "(f x) (g\n       y)\n(h z)\n",
    "' a": "'a\n",
    ", @a": ", @a\n",
    ",@a": ",@a\n",
    "(define x  1)     ; one\n(define yy 2)     ; two": "(define x 1)      ; one\n(define yy 2)     ; two\n",
    '(display "a\n   b"\n    x)': '(display "a\n   b"\n         x)\n',
    "(f\r\n  x)\r\n": "(f\n x)\n",
    "x #!eof ) not read": "x\n#!eof ) not read",
    "#;  (a  b) c": "#;(a b) c\n",
    ";; indent: my-form 2\n(my-form a b\nc)": ";; indent: my-form 2\n(my-form a b\n  c)\n",
    "(define-syntax my (syntax-rules () ((_ a b body ...) (begin body ...))))\n(my a b\n c)":
        "(define-syntax my (syntax-rules () ((_ a b body ...) (begin body ...))))\n(my a b\n  c)\n",
}  # fmt: skip


def test_what_is_well_laid_out_stays() -> None:
    assert check(SAME) == SAME


@pytest.mark.parametrize("text", CHANGED, ids=repr)
def test_what_is_not_is_changed(text: str) -> None:
    assert check(text) == CHANGED[text]


FOUND = (
    "'(x x [\n 1 ] x ; note\n . x )",
    "(define-thing\n #| block |#  x  . x ) ",
    "#((while #| block |# x x\n       x x)) ",
    "(define (f (v : (Vector A {n % 8 = 0})) (i : {0 <=\n i <  n})) : A (g i))",
)


@pytest.mark.parametrize("text", FOUND, ids=repr)
def test_what_random_programs_have_found(text: str) -> None:
    check(text)


def test_deep_programs() -> None:
    text = "(f\n" * 2000 + ")" * 2000
    assert check(text).count("\n") == 2000
    check("(f " * 2000 + ")" * 2000)
    check("'" * 2000 + "x")


UNREADABLE = (
    "(a",
    "a)",
    "{a",
    "(a}",
    "{a . b}",
    '"a',
    "(a]",
    "'",
    "(. a)",
    "#u8(300)",
    "#|",
    "#0#",
    "1/0",
    "(a . b c)",
)


@pytest.mark.parametrize("text", UNREADABLE)
def test_what_cannot_be_read_is_an_error_with_its_place(text: str) -> None:
    with pytest.raises(ReadError) as found:
        laid_out(f"x\n{text}")
    assert found.value.span is not None
    assert found.value.span.line == 2


def test_a_defect_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ("(f y)\n; c\n", "(f x)\n", "(f x)\n; c\n; d\n"):
        monkeypatch.setattr(module, "laid_out", lambda parts, wrong=wrong: wrong)
        with pytest.raises(EshkolError, match="another program"):
            laid_out("(f x)\n; c\n")
