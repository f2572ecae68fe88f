"""The derived page of the op table: docs/ops.md.

python -m eshkol.ops.docs docs
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

from eshkol.ops.row import TABLE, Host, Jvp, Linear, NoDerivative, Op, Partials

HEAD = """# The tensor operations

This page is derived from the op table (`src/eshkol/ops/`) by `make generate`. Every operation is a function of `ek`,
and most are methods of `Tensor` too. In Scheme each is a procedure: `tensor-` and its name with dashes, as in
`(tensor-log-softmax t :axis 0)`, unless that name means something else, and whatever names the last column has; a name
that ends in `!` puts the result into its first argument. Parameters with a `*` before them take a sequence of tensors;
numbers may stand for tensors, and shapes broadcast as NumPy's do. “Derivative” says how an operation is
differentiated: by its own rule, or through the operations it is made of; where it has none, why. Dtypes are the kinds
that the tests cover.
"""

HOST_HEAD = """
## On the host

Everything else runs as native code on all cores of the CPU, in plans that need Python only to be started. These are
computed by NumPy or SciPy instead, as a step of the plan, and so is what is made of them (`svd`, `eigvals`, `lstsq`).
On a GPU all of this is refused by name, and so are decompositions and systems of equations.

"""
COMPLEX_HEAD = "Complex numbers run as all others, but are left to the host in "
PAIRED = ("matrix_product",)  # of complex numbers, products of real ones
HOST_NOTES = {
    "dft": "of more than 2²⁰ numbers, or empty",
    "sort": "in C on all cores, but for the sort of integers that it comes to, which is NumPy's",
}


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
    return "\n".join(lines) + "\n" + on_the_host()


def on_the_host() -> str:
    """What of the table no plan computes natively."""
    rows = sorted(op.name for op in TABLE.values() if op.public and isinstance(op.lower, Host) and not op.lower.native)
    told = [f"`{name}`" + (f" ({HOST_NOTES[name]})" if name in HOST_NOTES else "") for name in rows]
    return HOST_HEAD + ", ".join(told) + ".\n\n" + COMPLEX_HEAD + ", ".join(f"`{name}`" for name in _of_real()) + ".\n"


def _of_real() -> list[str]:
    """The rows that kernels compute for real numbers alone, though they take complex ones."""
    kernels = (op for op in TABLE.values() if op.public and not op.composite and not isinstance(op.lower, Host))
    return sorted(op.name for op in kernels if "complex" in op.dtypes and not op.of_complex and op.name not in PAIRED)


if __name__ == "__main__":
    import eshkol.ops  # noqa: F401  (fills the table)

    (Path(sys.argv[1]) / "ops.md").write_text(ops_page(), encoding="utf-8")
