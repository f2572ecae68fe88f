"""The types of the standard library: one table, and what the signatures of primitives say of all others.

Comes in: the name of a variable of the library. Goes out: its type. The table is text in the language's own syntax,
read when the first name is asked for. A primitive without a row takes what the names of its parameters mean
everywhere in the library (`string`, `k`, `list`), and gives Any.
"""

from __future__ import annotations

import re
from functools import cache

from eshkol.lang.core import Cell
from eshkol.lang.datum import List
from eshkol.lang.reader import read
from eshkol.lang.source import Source
from eshkol.lang.syntax import to_datum
from eshkol.runtime.scheme_table import PrimitiveRow, rows
from eshkol.types.kinds import ANY, BIT, NEVER, NUMBERS, TENSOR, Arrow, Type, function
from eshkol.types.reading import read_type

# Names, and the type of all of them. `Quantity` is a number or a tensor, `Ordered` a real or a tensor.
TABLE = """
((string? char? symbol? boolean? number? complex? real? rational? integer? exact-integer? exact-rational?
  exact-nonnegative-integer? pair? null? list? vector? bytevector? procedure? port? keyword? box? eof-object?
  hash-table? record? tensor? error-object? not eq? eqv? equal? input-port? output-port? textual-port? binary-port?
  symbol-interned? identifier? file-error? read-error? promise? void?) (-> Any [Any] Boolean))
((exact? inexact? finite? infinite? nan?) (-> Number Boolean))
((even? odd?) (-> Real Boolean))
((boolean=?) (-> Boolean Boolean Boolean * Boolean))
((symbol=?) (-> Symbol Symbol Symbol * Boolean))
((void) (-> Any * Void))
((values) (-> Any * Any))
((apply) (-> Procedure Any Any * Any))
((procedure-name) (-> Procedure Any))
((procedure-source procedure-doc) (-> Procedure Any))
((exact inexact->exact) (-> Number Number))
((inexact exact->inexact) (-> Quantity Quantity))
((numerator) (-> Real Real))
((denominator) (-> Real Real))
((real-part imag-part magnitude angle) (-> Number Number))
((make-rectangular make-polar) (-> Real Real Number))
((rationalize) (-> Real Real Real))
((gcd lcm) (-> Real * Real))
((bitwise-and bitwise-ior bitwise-xor) (-> Integer * Integer))
((bitwise-not) (-> Integer Integer))
((arithmetic-shift) (-> Integer Integer Integer))
((bit-count integer-length) (-> Integer Nat))
((number->string) (-> Number [Nat] String))
((string->number) (-> String [Nat] (U Number False)))
((make-string) (-> Nat [Char] String))
((string) (-> Any * String))
((string-length) (-> String Nat))
((string-ref) (-> String Nat Char))
((string-set!) (-> String Nat Char Void))
((substring) (-> String Nat [Nat] String))
((string-copy) (-> String [Nat] [Nat] String))
((string-append) (-> String * String))
((string-copy!) (-> String Nat String [Nat] [Nat] Any))
((string-fill!) (-> String Char [Nat] [Nat] Void))
((string->list) (-> String [Nat] [Nat] (List Char)))
((list->string) (-> (List Char) String))
((string->vector) (-> String [Nat] [Nat] (Vector Char)))
((vector->string) (-> (Vector Char) [Nat] [Nat] String))
((string->utf8) (-> String [Nat] [Nat] Bytevector))
((utf8->string) (-> Bytevector [Nat] [Nat] String))
((string=? string<? string>? string<=? string>=? string-ci=? string-ci<? string-ci>? string-ci<=? string-ci>=?)
 (-> String * Boolean))
((string-upcase string-downcase string-foldcase) (-> String String))
((string-null?) (-> String Boolean))
((string-prefix? string-suffix?) (-> String String Boolean))
((string-join) (-> (List String) [String] String))
((char->integer) (-> Char Nat))
((integer->char) (-> Nat Char))
((char=? char<? char>? char<=? char>=? char-ci=? char-ci<? char-ci>? char-ci<=? char-ci>=?) (-> Char * Boolean))
((char-alphabetic? char-numeric? char-whitespace? char-upper-case? char-lower-case?) (-> Char Boolean))
((digit-value) (-> Char (U Nat False)))
((char-upcase char-downcase char-foldcase) (-> Char Char))
((make-bytevector) (-> Nat [Nat] Bytevector))
((bytevector) (-> Nat * Bytevector))
((bytevector-length) (-> Bytevector Nat))
((bytevector-u8-ref) (-> Bytevector Nat Nat))
((bytevector-u8-set!) (-> Bytevector Nat Nat Void))
((bytevector-append) (-> Bytevector * Bytevector))
((bytevector-copy) (-> Bytevector [Nat] [Nat] Bytevector))
((make-vector) (All (a) (-> Nat [a] (Vector a))))
((vector) (All (a) (-> a * (Vector a))))
((vector-length) (-> (Vector Any) Nat))
((vector-ref) (All (a) (-> (Vector a) Nat a)))
((vector-set!) (All (a) (-> (Vector a) Nat a Void)))
((vector->list) (All (a) (-> (Vector a) [Nat] [Nat] (List a))))
((list->vector) (All (a) (-> (List a) (Vector a))))
((vector-fill!) (All (a) (-> (Vector a) a [Nat] [Nat] Void)))
((vector-copy) (All (a) (-> (Vector a) [Nat] [Nat] (Vector a))))
((subvector) (All (a) (-> (Vector a) Nat Nat (Vector a))))
((vector-append) (All (a) (-> (Vector a) * (Vector a))))
((cons) (All (a b) (-> a b (Pair a b))))
((car) (All (a) (-> (U (Pair a Any) (List a)) a)))
((cdr) (All (a b) (case-> (-> (List a) (List a)) (-> (Pair Any b) b))))
((set-car! set-cdr!) (-> (U (Pair Any Any) (List Any)) Any Void))
((list) (All (a) (-> a * (List a))))
((make-list) (All (a) (-> Nat [a] (List a))))
((length) (-> (List Any) Nat))
((reverse) (All (a) (-> (List a) (List a))))
((list-copy) (All (a) (case-> (-> (List a) (List a)) (-> Any Any))))
((list-tail list-head) (All (a) (-> (List a) Nat (List a))))
((list-ref) (All (a) (-> (List a) Nat a)))
((memq memv) (All (a) (-> Any (List a) (U False (List a)))))
((member) (All (a) (-> Any (List a) [(-> Any Any Any)] (U False (List a)))))
((iota) (-> Nat [Real] [Real] (List Real)))
((symbol->string) (-> Symbol String))
((string->symbol string->uninterned-symbol) (-> String Symbol))
((eof-object) (-> Eof))
((read-line) (-> [Port] (U String Eof)))
((read-char peek-char) (-> [Port] (U Char Eof)))
((read-u8 peek-u8) (-> [Port] (U Nat Eof)))
((read-string) (-> Nat [Port] (U String Eof)))
((newline fresh-line) (-> [Port] Void))
((display write write-shared write-simple) (-> Any [Port] Void))
((write-char) (-> Char [Port] Void))
((write-string) (-> String [Port] [Nat] [Nat] Void))
((open-input-string) (-> String Port))
((open-output-string) (-> Port))
((get-output-string) (-> Port String))
((open-input-file open-output-file open-binary-input-file open-binary-output-file) (-> String Port))
((close-port close-input-port close-output-port) (-> Port Void))
((file-exists?) (-> String Boolean))
((delete-file) (-> String Void))
((current-directory) (-> String))
((command-line) (-> (List String)))
((get-environment-variable) (-> String (U String False)))
((current-second) (-> Real))
((current-jiffy jiffies-per-second current-milliseconds) (-> Real))
((error) (-> Any Any * Never))
((raise) (-> Any Never))
((emergency-exit) (-> [Any] Never))
((error-object-message) (-> Any Any))
((map) (All (a b c d) (case-> (-> (-> a b) (List a) (List b)) (-> (-> a c b) (List a) (List c) (List b))
  (-> (-> a c d b) (List a) (List c) (List d) (List b)) (-> (-> a b) (Vector a) (Vector b))
  (-> Procedure (U (List Any) (Vector Any)) * Any))))
((for-each) (All (a b c) (case-> (-> (-> a Any) (List a) Any) (-> (-> a b Any) (List a) (List b) Any)
  (-> Procedure (U (List Any) (Vector Any)) * Any))))
((vector-map) (All (a b c) (case-> (-> (-> a b) (Vector a) (Vector b)) (-> (-> a c b) (Vector a) (Vector c) (Vector b))
  (-> Procedure (Vector Any) * (Vector Any)))))
((vector-for-each) (All (a) (case-> (-> (-> a Any) (Vector a) Any) (-> Procedure (Vector Any) * Any))))
((filter) (All (a) (-> (-> a Any) (List a) (List a))))
((fold) (All (a b) (case-> (-> (-> a b b) b (List a) b) (-> Procedure Any (U (List Any) (Vector Any)) * Any))))
((fold-left) (All (a b) (case-> (-> (-> b a b) b (List a) b) (-> Procedure Any (U (List Any) (Vector Any)) * Any))))
((fold-right) (All (a b) (case-> (-> (-> a b b) b (List a) b) (-> Procedure Any (U (List Any) (Vector Any)) * Any))))
((string-map) (case-> (-> (-> Char Char) String String) (-> Procedure String * String)))
((string-for-each) (case-> (-> (-> Char Any) String Any) (-> Procedure String * Any)))
((owned) (All (a) (-> a [(-> a Any)] (Owned a))))
((move) (All (a) (case-> (-> (Owned a) (Owned a)) (-> (Shared a) (Shared a)))))
((borrow borrow-mut) (All (a) (-> (U (Owned a) (Shared a)) a)))
((shared) (All (a) (case-> (-> (Shared a) (Shared a)) (-> (Owned a) (Shared a)) (-> a [(-> a Any)] (Shared a)))))
((weak-ref) (All (a) (case-> (-> (Shared a) (Weak a)) (-> Any Any))))
((weak-upgrade) (All (a) (case-> (-> (Weak a) (U False (Shared a))) (-> Any Any))))
((drop) (case-> (-> (U (Owned Any) (Shared Any)) Void) (-> Any Nat Any)))
((owned? shared? weak-ref? region?) (-> Any Boolean))
((owner-alive?) (-> (U (Owned Any) (Shared Any)) Boolean))
((shared-count) (-> (Shared Any) Nat))
((region-alloc) (-> Nat [Any] Bytevector))
((bytevector-ieee-double-native-ref) (-> Bytevector Nat Float64))
((bytevector-ieee-double-native-set!) (-> Bytevector Nat Float64 Void))
"""
WORDS = {"Quantity": Type(NUMBERS | TENSOR), "Never": NEVER}

# What parameters of primitives are called in their signatures, everywhere in the library.
PARAMETERS = {
    "string": "String", "string1": "String", "string2": "String", "pattern": "String", "prefix": "Any",
    "char": "Char", "vector": "(Vector Any)", "bytevector": "Bytevector", "symbol": "Symbol", "keyword": "Keyword",
    "port": "Port", "box": "Box", "k": "Nat", "n": "Quantity", "z": "Quantity", "x": "Quantity", "y": "Quantity",
    "z1": "Quantity", "z2": "Quantity", "x1": "Quantity", "x2": "Quantity", "pair": "(U (Pair Any Any) (List Any))",
    "list": "(List Any)",
}  # fmt: skip

_STANDARD = re.compile(r"\((eshkol(?! compat)|scheme|srfi (1|69|133)\))")


def _data(text: str) -> list[object]:
    return [to_datum(form) for form in read(Source("types of the library", text))]


@cache
def _table() -> dict[str, Type]:
    found: dict[str, Type] = {}
    for row in _data(TABLE):
        assert isinstance(row, List)
        kind = read_type(row.items[1], WORDS, None)
        found |= {name.name: kind for name in row.items[0].items}
    return found


@cache
def _parameters() -> dict[str, Type]:
    return {name: read_type(_data(text)[0], WORDS, None) for name, text in PARAMETERS.items()}


def is_standard(cell: Cell) -> bool:
    return cell.primitive or _is_library(cell.library)


@cache
def _is_library(name: str) -> bool:
    return _STANDARD.match(name) is not None


@cache
def _of_name(name: str) -> Type | None:
    return _table().get(name)


@cache
def _of_row(name: str) -> Type | None:
    row = rows().get(name)
    return None if row is None else function(arrow_of(row))


def arrow_of(row: PrimitiveRow) -> Arrow:
    """What the signature of a primitive says: how many arguments it takes, and what their names mean."""
    words = row.signature.replace("[", " ").replace("]", " ").strip("() ").split()[1:]
    names = [word.strip("()") for word in words if word != "..."]
    known = _parameters()
    kinds = [known.get(name, ANY) for name in names]
    most = row.min if row.max < 0 else row.max
    kinds += [ANY] * (most - len(kinds))
    rest = None if row.max >= 0 else kinds[-1] if kinds and "..." in words[-1:] else ANY
    return Arrow(tuple(kinds[:most]), rest, ANY, 0 if row.max < 0 else most - row.min)


def standard_type(cell: Cell) -> Type | None:
    """The type of a variable of the standard library; None where nothing is known of it."""
    if not is_standard(cell):
        return None
    return _of_name(cell.name) or (_of_row(cell.name) if cell.primitive else None)


# ---- predicates ------------------------------------------------------------------------------------------------------


def _mask(*kinds: str) -> Type:
    mask = 0
    for kind in kinds:
        mask |= BIT[kind]
    return Type(mask)


_LIST = read_type(_data("(List Any)")[0], {}, None)
_REALS = read_type(_data("Real")[0], {}, None)
_INTEGERS = read_type(_data("Integer")[0], {}, None)
_NATURALS = read_type(_data("Nat")[0], {}, None)
_EXACTS = read_type(_data("Exact")[0], {}, None)
NOTHING = Type(0)

# Of each predicate: what a value is for which it holds, and what a value is not for which it does not.
PREDICATES: dict[str, tuple[Type, Type]] = {
    **{f"{kind}?": (_mask(kind), _mask(kind)) for kind in (
        "string", "char", "symbol", "keyword", "null", "pair", "vector", "procedure", "bytevector", "port", "box",
    )},
    "boolean?": (_mask("true", "false"), _mask("true", "false")),
    "eof-object?": (_mask("eof"), _mask("eof")),
    "hash-table?": (_mask("table"), _mask("table")),
    "tensor?": (_mask("tensor"), _mask("tensor")),
    "number?": (Type(NUMBERS), Type(NUMBERS)),
    "complex?": (Type(NUMBERS), Type(NUMBERS)),
    "real?": (_REALS, NOTHING),
    "rational?": (_REALS, _EXACTS),
    "integer?": (_REALS, _INTEGERS),
    "exact-integer?": (_INTEGERS, _INTEGERS),
    "exact-rational?": (_EXACTS, _EXACTS),
    "exact-nonnegative-integer?": (_NATURALS, _NATURALS),
    "list?": (_LIST, NOTHING),
}  # fmt: skip
