"""Every family of the op table beside the best peer: `python -m bench all`, compared by `python -m bench compare A B`.

Rows are under `rows/`, what a row is in `row.py`, how it is timed in `contest.py`, the table and its files in
`report.py`. Peers are NumPy (with SciPy) and PyTorch as they are, and JAX compiled. Ours is compiled, unless
no library can.
"""

from __future__ import annotations

from bench.every.row import Row
from bench.every.rows import arrays, learning, more, numeric, others, others_learning, others_numeric

TITLE = "Every family of operations"
ROWS: tuple[Row, ...] = (
    *arrays.rows(),
    *numeric.rows(),
    *learning.rows(),
    *more.rows(),
    *others.rows(),
    *others_numeric.rows(),
    *others_learning.rows(),
)
