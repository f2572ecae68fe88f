"""The derived page of the op table: docs/ops.md.

python -m eshkol.ops.docs docs
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

from eshkol.ops.row import TABLE, Jvp, Linear, NoDerivative, Op, Partials

HEAD = """# The tensor operations

This page is derived from the op table (`src/eshkol/ops/`) by `make generate`. Every operation is a function of `ek`,
and most are methods of `Tensor` too. In Scheme each is a procedure: `tensor-` and its name with dashes, as in
`(tensor-log-softmax t :axis 0)`, unless that name means something else, and whatever names the last column has; a name
that ends in `!` puts the result into its first argument. Parameters with a `*` before them take a sequence of tensors;
numbers may stand for tensors, and shapes broadcast as NumPy's do. “Derivative” says how an operation is
differentiated: by its own rule, or through the operations it is made of; where it has none, why. Dtypes are the kinds
that the tests cover.
"""


def signature(op: Op) -> str:
    """How an op is called."""
    tensors = {i.name: i for i in op.inputs}
    shown = []
    for p in op.signature.parameters.values():
        text = p.name if p.default is inspect.Parameter.empty else f"{p.name}={p.default!r}"
        shown.append(f"*{text}" if p.name in tensors and tensors[p.name].many else text)
    return f"{op.name}({', '.join(shown)})"


def derivative(op: Op) -> str:
    """How an op is differentiated, in words."""
    rule = op.derivative
    if isinstance(rule, Partials | Jvp):
        return "own rule"
    if isinstance(rule, Linear):
        return "linear"
    if isinstance(rule, NoDerivative):
        return ("zero: " if rule.zero else "none: ") + rule.why
    return "follows"


def ops_page() -> str:
    """The page that lists every op by group."""
    rows = [op for op in TABLE.values() if op.public]
    lines = [HEAD.rstrip()]
    for group in sorted({op.group for op in rows}):
        lines += ["", f"## {group}", "", "| call | meaning | derivative | dtypes | also |", "|---|---|---|---|---|"]
        for op in sorted((op for op in rows if op.group == group), key=lambda op: op.name):
            doc = " ".join(op.doc.split("\n\n")[0].split()).replace("|", "\\|")
            also = ", ".join(
                [*(f"`{n}`" for n in op.aliases), *(f"`{n}` (Scheme)" for n in (*op.scheme, *op.procedures))]
            )
            call = signature(op).replace("|", "\\|")
            lines.append(
                f"| `{call}` | {doc} | {derivative(op).replace('|', chr(92) + '|')} | {', '.join(op.dtypes)} | {also} |"
            )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    import eshkol.ops  # noqa: F401  (fills the table)

    (Path(sys.argv[1]) / "ops.md").write_text(ops_page(), encoding="utf-8")
