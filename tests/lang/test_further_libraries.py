"""Libraries that programs import by name, against Python: sorting, strings, characters, bits, comparators.

Each test writes one program that goes through many random cases, which stand in it as data, so that little is compiled.
"""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Iterable
from fractions import Fraction
from itertools import groupby
from typing import Any

import pytest
from compiled import written
from in_cases import check
from test_strings import SAME_UNICODE

from effort import amount
from eshkol.session import Session, on_session
from eshkol.session.describing import about_name

COUNT = amount(400, 60)


# ---- sorting ---------------------------------------------------------------------------------------------------------


def test_sorts_are_stable_and_merges_keep_the_order() -> None:
    draw = random.Random(1)

    def cases() -> Iterable[tuple[list[Any], Any]]:
        for _ in range(COUNT):
            rows = [[draw.randrange(6), k] for k in range(draw.randrange(40))]
            more = sorted(([draw.randrange(6), -k] for k in range(draw.randrange(9))), key=lambda row: row[0])
            start = draw.randint(0, len(rows))
            end = draw.randint(start, len(rows))
            ordered = sorted(rows, key=lambda row: row[0])
            part = sorted(rows[start:end], key=lambda row: row[0])
            merged = sorted(ordered + more, key=lambda row: row[0])
            keys = [row[0] for row in rows]
            unique = [key for key, _ in groupby(keys)]
            chosen = sorted(keys)[start] if start < len(keys) else "none"
            expected = [ordered, tuple(part), merged, merged, unique, chosen]
            yield [rows, more, start, end], expected

    check(
        "(scheme sort) (only (scheme list) first)",
        "rows more start end",
        """(let* ((less? (lambda (a b) (< (car a) (car b)))) (ordered (list-sort less? rows)) (keys (map car rows)))
             (list ordered (vector-sort less? (list->vector rows) start end) (list-merge less? ordered more)
                   (vector->list (vector-merge less? (list->vector ordered) (list->vector more)))
                   (list-delete-neighbor-dups = keys)
                   (if (< start (length keys)) (vector-select! < (list->vector keys) start) "none")))""",
        cases(),
    )


# ---- strings ---------------------------------------------------------------------------------------------------------


def test_strings_agree_with_those_of_python() -> None:
    draw = random.Random(2)

    def word(most: int = 9) -> str:
        return "".join(draw.choice("aab bÄ1é") for _ in range(draw.randrange(most)))

    def cases() -> Iterable[tuple[list[Any], Any]]:
        for _ in range(COUNT * 2):
            text, piece, count = word(), word(3), draw.randrange(12)
            start = draw.randint(0, len(text))
            end = draw.randint(start, len(text))
            found, last = text.find(piece, start, end), text.rfind(piece, start, end)
            digits = [k for k in range(start, end) if text[k].isdigit()]
            expected = [
                None if found < 0 else found,
                None if last < 0 else last,
                text.split(piece) if piece and text else list(text) if not piece else [],
                piece.join([text, piece, text]),
                text.rjust(count)[-count:] if count else "",
                text.ljust(count)[:count],
                text.strip(" "),
                text.rstrip("a"),
                text[start:end].count("a"),
                text.startswith(piece),
                text.endswith(piece),
                digits[0] if digits else None,
                digits[-1] if digits else None,
                text[:start] + piece + text[end:],
                "".join(char for char in text if not char.isalpha()),
                text[:start][::-1],
                [text[k : k + 3] for k in range(0, len(text), 3)],
                text.lower().find(piece.lower()) >= 0,
            ]
            yield [text, piece, count, start, end], expected

    check(
        "(prefix (srfi 152) s:) (prefix (srfi 13) t:)",
        "text piece count start end",
        """(list (s:string-contains text piece start end) (s:string-contains-right text piece start end)
                 (s:string-split text piece) (s:string-join (list text piece text) piece)
                 (s:string-pad text count) (s:string-pad-right text count)
                 (s:string-trim-both text) (t:string-trim-right text #\\a)
                 (t:string-count text #\\a start end) (s:string-prefix? piece text) (s:string-suffix? piece text)
                 (s:string-index text char-numeric? start end) (s:string-index-right text char-numeric? start end)
                 (s:string-replace text piece start end) (s:string-remove char-alphabetic? text)
                 (t:string-reverse text 0 start) (s:string-segment text 3)
                 (if (t:string-contains-ci text piece) #t #f))""",
        cases(),
    )


def test_searching_in_steps_finds_what_searching_at_once_does() -> None:
    draw = random.Random(3)

    def cases() -> Iterable[tuple[list[Any], Any]]:
        for _ in range(COUNT):
            text, piece = ("".join(draw.choice("ab") for _ in range(size)) for size in (20, draw.randint(1, 4)))
            found = text.find(piece)
            yield [text, piece], found + len(piece) if found >= 0 else None

    check(
        "(only (srfi 13) make-kmp-restart-vector string-kmp-partial-search)",
        "text piece",
        """(let ((restart (make-kmp-restart-vector piece)))
             (let loop ((at 0) (i 0))
               (let* ((end (min 20 (+ at 3))) (found (string-kmp-partial-search piece restart text i char=? 0 at end)))
                 (cond ((< found 0) (- found)) ((= found (string-length piece)) end) ((= end 20) #f)
                       (else (loop end found))))))""",
        cases(),
    )


# ---- sets of characters ----------------------------------------------------------------------------------------------


def test_character_sets_agree_with_sets_of_python() -> None:
    draw = random.Random(4)
    letters = [chr(code) for code in (*range(90, 110), *range(250, 262), 0xD7FF, 0xE000, 0x10FFFF)]

    def some() -> str:
        return "".join(draw.sample(letters, draw.randrange(len(letters))))

    def codes(chars: Iterable[str]) -> list[int]:
        return sorted(map(ord, chars))

    def cases() -> Iterable[tuple[list[Any], Any]]:
        for _ in range(COUNT):
            a, b, low = some(), some(), draw.randrange(90, 256)
            x, y, span = set(a), set(b), {chr(code) for code in range(low, low + 9)}
            results = [x | y, x & y, x - y, x ^ y, set(letters) - x, x | span]
            yield [a, b, low, "".join(letters)], [*map(codes, results), 0x110000 - 0x800 - len(x), x <= y, x == y]

    check(
        "(srfi 14)",
        "a b low letters",
        """(let ((x (string->char-set a)) (y (string->char-set b)))
             (append (map (lambda (set) (map char->integer (char-set->list set)))
                          (list (char-set-union x y) (char-set-intersection x y) (char-set-difference x y)
                                (char-set-xor x y)
                                (char-set-intersection (char-set-complement x) (string->char-set letters))
                                (ucs-range->char-set low (+ low 9) #f x)))
                     (list (char-set-size (char-set-complement x)) (char-set<= x y) (char-set= x y))))""",
        cases(),
    )


@pytest.mark.skipif(not SAME_UNICODE, reason="another version of Unicode")
def test_classes_of_characters_are_those_of_unicode() -> None:
    chars = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    sizes = [
        sum(unicodedata.category(char)[0] == "P" for char in chars),
        sum(unicodedata.category(char)[0] == "S" for char in chars),
        sum(unicodedata.category(char) == "Lt" for char in chars),
        sum(char.isdecimal() for char in chars),
        sum(char.isspace() and char not in "\x1c\x1d\x1e\x1f" for char in chars),
    ]
    names = ["punctuation", "symbol", "title-case", "digit", "whitespace"]
    body = f"(map char-set-size (list {' '.join(f'char-set:{name}' for name in names)}))"
    check("(srfi 14)", "", body, [([], sizes)])


# ---- integers --------------------------------------------------------------------------------------------------------


def integer(draw: random.Random) -> int:
    size = draw.choice([3, 8, 31, 62, 64, 65, 130])
    return draw.randint(-(1 << size), 1 << size)


def test_bits_agree_with_those_of_python() -> None:
    draw = random.Random(5)

    def cases() -> Iterable[tuple[list[Any], Any]]:
        for _ in range(COUNT * 2):
            a, b, mask = integer(draw), integer(draw), integer(draw)
            start = draw.randrange(70)
            end = start + draw.randrange(70)
            count, width = draw.randint(-9, 99), end - start
            ones = (1 << width) - 1
            field = a >> start & ones
            turn = count % width if width else 0
            turned = (field << turn | field >> (width - turn)) & ones if width else 0
            reversed_ = int(f"{field:0{width}b}"[::-1], 2) if width else 0
            without = a & ~(ones << start)
            expected = [
                ~(a ^ b), ~(a & b), ~(a | b), ~a & b, a & ~b, ~a | b, a | ~b, a & mask | b & ~mask,
                bool(a >> start & 1), a | 1 << start, a & ~(1 << start), (a & -a).bit_length() - 1,
                field, without, a | ones << start, without | (b & ones) << start,
                a & ~(ones << start) | b & ones << start,
                without | turned << start, without | reversed_ << start,
                [bool(a >> k & 1) for k in range(a.bit_length() if a >= 0 else (~a).bit_length())],
                (a >> count if count > 0 else a << -count), (a & b) != 0, (a & mask) == mask,
            ]  # fmt: skip
            yield [a, b, mask, start, end, count], expected

    check(
        "(srfi 151)",
        "a b mask start end count",
        """(list (bitwise-eqv a b) (bitwise-nand a b) (bitwise-nor a b) (bitwise-andc1 a b) (bitwise-andc2 a b)
                 (bitwise-orc1 a b) (bitwise-orc2 a b) (bitwise-if mask a b)
                 (bit-set? start a) (copy-bit start a #t) (copy-bit start a #f) (first-set-bit a)
                 (bit-field a start end) (bit-field-clear a start end) (bit-field-set a start end)
                 (bit-field-replace a b start end) (bit-field-replace-same a b start end)
                 (bit-field-rotate a count start end) (bit-field-reverse a start end)
                 (bits->list a) (arithmetic-shift a (- count)) (any-bit-set? a b) (every-bit-set? mask a))""",
        cases(),
    )


def test_divisions_agree_with_those_of_python() -> None:
    draw = random.Random(6)

    def quotients(n: int, d: int) -> list[int]:
        exact = Fraction(n, d)
        euclid = n // d if d > 0 else -(n // -d)
        balanced = next(q for q in range(euclid - 2, euclid + 3) if -abs(d) <= 2 * (n - q * d) < abs(d))
        return [n // d, -(-n // d), int(exact) if n else 0, round(exact), euclid, balanced]

    def cases() -> Iterable[tuple[list[Any], Any]]:
        for _ in range(COUNT * 2):
            n, d = integer(draw), draw.choice([2, 4, -2, -4, 0]) or integer(draw) or 1
            found = quotients(n, d)
            yield [n, d], [[q, n - q * d, q, n - q * d] for q in found]

    names = ["floor", "ceiling", "truncate", "round", "euclidean", "balanced"]
    each = " ".join(
        f"(let-values (((q r) ({name}/ n d))) (list q r ({name}-quotient n d) ({name}-remainder n d)))"
        for name in names
    )
    check("(except (srfi 141) " + " ".join(f"{n}/ {n}-quotient {n}-remainder" for n in ("floor", "truncate")) + ")",
          "n d", f"(list {each})", cases())  # fmt: skip


# ---- texts of numbers ------------------------------------------------------------------------------------------------


def test_numbers_are_formatted_as_by_python() -> None:
    draw = random.Random(7)

    def cases() -> Iterable[tuple[list[Any], Any]]:
        for _ in range(COUNT * 2):
            x = draw.choice(
                [0.0, 0.5, 2.5, 1e22, draw.uniform(-1e3, 1e3), draw.gauss(0, 1) * 10.0 ** draw.randint(-30, 30)]
            )
            n, width, digits = integer(draw), draw.randrange(14), draw.randrange(8)
            pattern = f"~{width},{digits}f ~,{digits}e ~,{max(digits, 1)}g|~{width}d ~{width},'0x ~@d ~:d ~o ~b"
            sign = "-" if n < 0 else ""
            expected = (
                f"{x:{width}.{digits}f} {x:.{digits}e} {x:.{max(digits, 1)}g}|{n:{width}d} {n:0{width}x} {n:+d} "
                f"{sign}{abs(n):,} {n:o} {n:b}"
            )
            yield [pattern, x, n], expected

    check("(srfi 48)", "pattern x n", "(format pattern x x x n n n n n n)", cases())


def test_the_shortest_text_with_an_exponent_is_that_of_python() -> None:
    draw = random.Random(8)
    numbers = [draw.gauss(0, 1) * 10.0 ** draw.randint(-300, 300) for _ in range(COUNT)] + [5e-324, 1.0, 123456.0]

    def expected(x: float) -> str:
        return next(text for digits in range(17) if float(text := f"{x:.{digits}e}") == x)

    check("(srfi 48)", "x", '(format "~e" x)', [([x], expected(x)) for x in numbers])


# ---- random numbers --------------------------------------------------------------------------------------------------


def test_random_numbers_are_those_of_the_generator_as_it_was_published() -> None:
    m1, m2 = 4294967087, 4294944443

    def numbers(count: int) -> list[int]:
        x, y, drawn = [12345] * 3, [12345] * 3, []
        for _ in range(count):
            x = [*x[1:], (1403580 * x[1] - 810728 * x[0]) % m1]
            y = [*y[1:], (527612 * y[2] - 1370589 * y[0]) % m2]
            drawn.append((x[2] - y[2]) % m1)
        return drawn

    body = "(let ((draw (random-source-make-integers (make-random-source)))) (let loop ((k 0) (found '())) " \
           "(if (= k 40) (reverse found) (loop (+ k 1) (cons (draw 4294967087) found)))))"  # fmt: skip
    check("(srfi 27)", "", body, [([], numbers(40))])


# ---- comparators -----------------------------------------------------------------------------------------------------


def test_the_default_comparator_orders_all_data() -> None:
    """Values are ordered by their kinds, and within one as Python orders them; what is the same has the same hash."""
    draw = random.Random(9)

    def value(depth: int) -> Any:
        kind = draw.randrange(6 if depth else 4)
        if kind == 4:
            return [value(depth - 1) for _ in range(draw.randrange(3))]
        if kind == 5:
            return tuple(value(depth - 1) for _ in range(draw.randrange(3)))
        return [draw.choice(["", "a", "ab", "b"]), draw.randrange(-2, 3), draw.choice([True, False]), Fraction(1, 2)][
            kind
        ]

    def key(item: Any) -> Any:
        match item:
            case list():
                # a list that ends comes before one that goes on
                return (1, tuple((1, key(part)) for part in item)) if item else (0,)
            case bool():
                return (2, item)
            case str():
                return (4, item)
            case tuple():
                return (7, len(item), tuple(map(key, item)))
        return (6, item)

    def cases() -> Iterable[tuple[list[Any], Any]]:
        for _ in range(COUNT):
            items = [value(2) for _ in range(draw.randrange(9))]
            yield [items], [sorted(items, key=key), True]

    check(
        "(scheme comparator) (scheme sort)",
        "items",
        """(let* ((c (make-default-comparator)) (sorted (list-sort (lambda (a b) (<? c a b)) items)))
             (list sorted
                   (let loop ((rest sorted))
                     (or (null? rest) (null? (cdr rest))
                         (and (<=? c (car rest) (cadr rest))
                              (eq? (=? c (car rest) (cadr rest)) (equal? (car rest) (cadr rest)))
                              (or (not (=? c (car rest) (cadr rest)))
                                  (= (comparator-hash c (car rest)) (comparator-hash c (cadr rest))))
                              (loop (cdr rest)))))))""",
        cases(),
    )


# ---- what is told ---------------------------------------------------------------------------------------------------


def test_outcomes_of_tests_tell_their_lines() -> None:
    program = """(import (scheme base) (scheme write) (srfi 64) (eshkol outcomes))
(test-runner-current (test-runner-null))
(test-begin "lines")
(test-equal "one" 1
  (+ 0 1))
(test-assert
  #f)
(test-end)
(write (map test-outcome-line (test-outcomes)))
(write (map test-outcome-kind (test-outcomes)))"""
    found: list[str] = []
    assert on_session(lambda session: found.append(written(session, program)), []) == 0
    assert found == ["(4 6)(pass fail)"]


def test_names_that_are_no_procedures_have_docs_too() -> None:
    found: dict[str, list[str]] = {}

    def work(session: Session) -> None:
        session.evaluate("(import (srfi 14) (srfi 64) (eshkol match))")
        for name in ("char-set:digit", "test-runner-pass-count", "match", "char-set-adjoin"):
            found[name] = about_name(session, name) or []

    assert on_session(work, []) == 0
    assert found["char-set:digit"][-1] == "Decimal digits of all scripts."
    assert found["test-runner-pass-count"][:2] == [
        "(test-runner-pass-count record)",
        "The pass-count of a test-runner.",
    ]
    assert found["match"][0] == "(match value (pattern body ...) ...)"
    assert found["char-set-adjoin"][1] == "The set with these characters, too."
