"""Writes the Unicode tables of the Scheme runtime: `python -m build_support.unicode_tables`.

What comes in is the Unicode database inside the running Python; what goes out is `unicode_data.h`, committed, which
chars.c includes; the types are in unicode.h. One property that is not in Python's database stands here. Classes that
only (srfi 14) asks for are written beside it, as Scheme.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path

TARGET = Path(__file__).resolve().parents[1].joinpath("src", "eshkol", "runtime", "native", "scheme", "unicode_data.h")
CLASSES = Path(__file__).resolve().parents[1].joinpath("src", "eshkol", "lib", "srfi", "14", "classes.scm")
SHIFT = 7  # code points of one page, as a power of two: the choice that makes the tables smallest
CODES = 0x110000

# Unicode 14: code points that are Alphabetic but neither letters (L*) nor letter numbers (Nl)
OTHER_ALPHABETIC = """
345 5B0-5BD 5BF 5C1-5C2 5C4-5C5 5C7 610-61A 64B-657 659-65F 670 6D6-6DC 6E1-6E4 6E7-6E8 6ED 711 730-73F 7A6-7B0
816-817 81B-823 825-827 829-82C 8D4-8DF 8E3-8E9 8F0-903 93A-93B 93E-94C 94E-94F 955-957 962-963 981-983 9BE-9C4
9C7-9C8 9CB-9CC 9D7 9E2-9E3 A01-A03 A3E-A42 A47-A48 A4B-A4C A51 A70-A71 A75 A81-A83 ABE-AC5 AC7-AC9 ACB-ACC AE2-AE3
AFA-AFC B01-B03 B3E-B44 B47-B48 B4B-B4C B56-B57 B62-B63 B82 BBE-BC2 BC6-BC8 BCA-BCC BD7 C00-C03 C3E-C44 C46-C48
C4A-C4C C55-C56 C62-C63 C81-C83 CBE-CC4 CC6-CC8 CCA-CCC CD5-CD6 CE2-CE3 D00-D03 D3E-D44 D46-D48 D4A-D4C D57 D62-D63
D81-D83 DCF-DD4 DD6 DD8-DDF DF2-DF3 E31 E34-E3A E4D EB1 EB4-EB9 EBB-EBC ECD F71-F81 F8D-F97 F99-FBC 102B-1036 1038
103B-103E 1056-1059 105E-1060 1062-1064 1067-106D 1071-1074 1082-108D 108F 109A-109D 1712-1713 1732-1733 1752-1753
1772-1773 17B6-17C8 1885-1886 18A9 1920-192B 1930-1938 1A17-1A1B 1A55-1A5E 1A61-1A74 1ABF-1AC0 1ACC-1ACE 1B00-1B04
1B35-1B43 1B80-1B82 1BA1-1BA9 1BAC-1BAD 1BE7-1BF1 1C24-1C36 1DE7-1DF4 24B6-24E9 2DE0-2DFF A674-A67B A69E-A69F A802
A80B A823-A827 A880-A881 A8B4-A8C3 A8C5 A8FF A926-A92A A947-A952 A980-A983 A9B4-A9BF A9E5 AA29-AA36 AA43 AA4C-AA4D
AA7B-AA7D AAB0 AAB2-AAB4 AAB7-AAB8 AABE AAEB-AAEF AAF5 ABE3-ABEA FB1E 10376-1037A 10A01-10A03 10A05-10A06
10A0C-10A0F 10D24-10D27 10EAB-10EAC 11000-11002 11038-11045 11073-11074 11082 110B0-110B8 110C2 11100-11102
11127-11132 11145-11146 11180-11182 111B3-111BF 111CE-111CF 1122C-11234 11237 1123E 112DF-112E8 11300-11303
1133E-11344 11347-11348 1134B-1134C 11357 11362-11363 11435-11441 11443-11445 114B0-114C1 115AF-115B5 115B8-115BE
115DC-115DD 11630-1163E 11640 116AB-116B5 1171D-1172A 1182C-11838 11930-11935 11937-11938 1193B-1193C 11940 11942
119D1-119D7 119DA-119DF 119E4 11A01-11A0A 11A35-11A39 11A3B-11A3E 11A51-11A5B 11A8A-11A97 11C2F-11C36 11C38-11C3E
11C92-11CA7 11CA9-11CB6 11D31-11D36 11D3A 11D3C-11D3D 11D3F-11D41 11D43 11D47 11D8A-11D8E 11D90-11D91 11D93-11D96
11EF3-11EF6 16F4F 16F51-16F87 16F8F-16F92 16FF0-16FF1 1BC9E 1E000-1E006 1E008-1E018 1E01B-1E021 1E023-1E024
1E026-1E02A 1E947 1F130-1F149 1F150-1F169 1F170-1F189
"""


def other_alphabetic() -> frozenset[int]:
    codes: set[int] = set()
    for piece in OTHER_ALPHABETIC.split():
        first, _, last = piece.partition("-")
        codes.update(range(int(first, 16), int(last or first, 16) + 1))
    return frozenset(codes)


def simple(code: int, mapped: str, otherwise: str) -> int:
    """The one character that a mapping to several stands for, where Unicode has one: else the character itself."""
    for text in (mapped, otherwise):
        if len(text) == 1:
            return ord(text)
    return code


def ignorable(character: str) -> bool:
    """Case_Ignorable: whether the rule for the final sigma looks past the character. Python's own rule tells."""
    past, found = (before + character + "\u03a3" for before in "A1")
    return past.lower().endswith("\u03c2") and not found.lower().endswith("\u03c2")


Record = tuple[int, int, int, int, int]


def record(code: int, extra: frozenset[int]) -> Record:
    """What is known of a code point: distances to its upper, lower and folded case, flags, value as a digit or -1."""
    character, category = chr(code), unicodedata.category(chr(code))
    if category == "Cs":
        return (0, 0, 0, 0, -1)
    upper, lower, fold = character.upper(), character.lower(), character.casefold()
    facts = (  # in the order of the flags in unicode.h
        category[0] == "L" or category == "Nl" or code in extra,
        character.isupper(),
        character.islower(),
        character.isupper() or character.islower() or category == "Lt",
        ignorable(character),
        len(upper) > 1,
        len(lower) > 1,
        len(fold) > 1,
    )
    return (
        simple(code, upper, character.title()) - code,
        simple(code, lower, character if code != 0x130 else "i") - code,
        simple(code, fold, character if len(lower) > 1 else lower) - code,
        sum(fact << bit for bit, fact in enumerate(facts)),
        unicodedata.decimal(character, -1),
    )


def rows(values: Iterable[str]) -> str:
    """Values with commas between them, in lines that are not too long."""
    lines = [""]
    for value in values:
        if len(lines[-1]) + len(value) + 1 > 115:
            lines.append("")
        lines[-1] += value + ","
    return "\n".join("    " + line for line in lines)


def array(kind: str, name: str, values: Sequence[str]) -> str:
    return f"static const {kind} {name}[{len(values)}] = {{\n{rows(values)}\n}};\n"


def long_mappings() -> list[str]:
    """Mappings to several characters, in the order of code points: {code, which, {characters}}."""
    found = []
    for code in range(CODES):
        character = chr(code)
        for which, mapped in enumerate((character.upper(), character.lower(), character.casefold())):
            if len(mapped) > 1:
                assert len(mapped) <= 3
                found.append(f"{{{code},{which},{{{','.join(str(ord(c)) for c in mapped.ljust(3, chr(0)))}}}}}")
    return found


def text() -> str:
    extra = other_alphabetic()
    numbers: dict[Record, int] = {}
    records = [numbers.setdefault(record(code, extra), len(numbers)) for code in range(CODES)]
    pages: dict[tuple[int, ...], int] = {}
    index = [pages.setdefault(tuple(records[at : at + (1 << SHIFT)]), len(pages)) for at in range(0, CODES, 1 << SHIFT)]
    assert max(len(numbers), len(pages)) <= 256  # so that a byte holds a number
    return "".join(
        (
            "/* Written by build_support/unicode_tables.py: do not edit. Case and classes of characters. */\n",
            f'#define UNICODE_VERSION "{unicodedata.unidata_version}"\n',
            f"enum {{ UNICODE_SHIFT = {SHIFT} }};\n\n",
            array("CharRecord", "char_records", ["{" + ",".join(map(str, key)) + "}" for key in numbers]),
            array("LongMapping", "long_mappings", long_mappings()),
            array("uint8_t", "char_index", [str(page) for page in index]),
            f"static const uint8_t char_pages[{len(pages)}][{1 << SHIFT}] = {{\n",
            "".join("{\n" + rows(str(number) for number in page) + "\n},\n" for page in pages),
            "};\n",
        )
    )


def bounds(classes: Sequence[str]) -> list[int]:
    """Where the characters of some general categories begin, and where they end, in turn."""
    inside = [unicodedata.category(chr(code)).startswith(tuple(classes)) for code in range(CODES)]
    return [code for code in range(CODES) if inside[code] != (code > 0 and inside[code - 1])]


def classes() -> str:
    lines = [
        ";;; Written by build_support/unicode_tables.py: do not edit. Where the characters of a class begin and end,",
        f";;; in turn; Unicode {unicodedata.unidata_version}.",
    ]
    for name, prefixes in (("punctuation", ["P"]), ("symbol", ["S"]), ("title-case", ["Lt"])):
        numbers = textwrap.wrap(" ".join(map(str, bounds(prefixes))), 118)
        lines += ["", f"(define {name}-bounds", "  '#(" + "\n    ".join(numbers) + "))"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
    CLASSES.write_text(classes(), encoding="utf-8")
