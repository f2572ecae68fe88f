"""The derived documentation: pages of `docs/` written from the instruction table and the translators' docstrings.

python -m eshkol.atlas.docs docs
"""

from __future__ import annotations

import sys
from pathlib import Path

from eshkol.atlas.isa import MEMORY_KINDS, REQUIRED, SUFFIX_KINDS, Field, Group, Kind, Opcode
from eshkol.atlas.table import ROWS
from eshkol.atlas.types import ALL_TYPES, FLOATS, INDEX_TYPES, INTEGERS, NARROW_INTEGERS, SIGNED, Type

_SETS = {
    ALL_TYPES: "all",
    FLOATS: "floats",
    INTEGERS: "integers",
    NARROW_INTEGERS: "integers to 64 bits",
    INDEX_TYPES: "I32 I64 U32 U64",
    FLOATS | SIGNED: "floats, signed integers",
    frozenset(): "",
}


def syntax(op: Opcode) -> str:
    """How an instruction is written."""
    suffixes = [op.name] + [f.name.upper() for f in op.fields if f.kind in SUFFIX_KINDS or f.kind is Kind.IMMEDIATE]
    operands = [_operand(f) for f in op.fields if f.kind not in SUFFIX_KINDS]
    operands.sort(key=lambda text: "=" in text)  # named operands come last
    return f"{'.'.join(suffixes)} {', '.join(operands)}".rstrip()


def _operand(f: Field) -> str:
    text = f"[{f.name}]" if f.kind in MEMORY_KINDS else f.name
    if f.kind in MEMORY_KINDS and f.is_named:
        text = f"{f.name}=[{f.name}]"
    elif f.is_named:
        text = f"{f.name}=" if f.default is REQUIRED else f"{f.name}={f.default}"
    return f"{text}?" if f.default is None else text


def type_names(types: frozenset[Type]) -> str:
    """A set of types in words."""
    return _SETS.get(types) or " ".join(t.name for t in Type if t in types)


def instructions_page() -> str:
    """The page that lists every instruction by chapter."""
    lines = [
        "# The Atlas instructions",
        "",
        "This page is derived from the instruction table (`src/eshkol/atlas/table/`) by `make generate`.",
        "In the syntax, upper-case suffixes stand for a type or a choice, `[x]` for an address, and `n=` for a",
        "named operand (with its default where it has one). “Expands” marks extensions that carry an expansion",
        "into base instructions; “can fail” marks instructions that may stop a launch on legal operands.",
    ]
    for group in Group:
        rows = [op for op in ROWS.values() if op.group is group]
        lines += ["", f"## {group.value}", "", "| syntax | meaning | types | |", "|---|---|---|---|"]
        for op in rows:
            marks = ["expands"] * op.is_extension + ["can fail"] * op.traps
            text = op.doc.replace("|", "\\|")
            lines.append(f"| `{syntax(op)}` | {text} | {type_names(op.types)} | {', '.join(marks)} |")
    choices = {f.choices for op in ROWS.values() for f in op.fields if f.choices is not None}
    lines += ["", "## Choices", ""]
    for kind in sorted(choices, key=lambda c: c.__name__):
        lines.append(f"- **{kind.__name__}**: {', '.join(member.name for member in kind)}")
    return "\n".join(lines) + "\n"


def translators_page() -> str:
    """The page on JSON kernels and circuits, as their modules describe themselves."""
    from eshkol.atlas.translate import circuit, kernel  # only this page needs them

    parts = ["# Translators", "", "This page is derived from the modules' own descriptions by `make generate`."]
    for module in (kernel, circuit):
        title, _, text = (module.__doc__ or "").partition("\n")
        parts += ["", f"## {title.rstrip('.')}", "", "```text", text.strip("\n"), "```"]
    return "\n".join(parts) + "\n"


PAGES = {"instructions.md": instructions_page, "translators.md": translators_page}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (Path(sys.argv[1]) / name).write_text(page(), encoding="utf-8")
