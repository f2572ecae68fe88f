"""Reductions of few terms over columns, in tiles: several rows of results at a time, each term in registers.

Comes in: a group that reduces a short axis before the last, of operands that broadcast: distances of rows, of which
`rewrite/turned.py` makes such. Goes out: one kernel, in which a lane walks along the columns of a few rows of results.
What is the same for these rows is read once for all of them, some terms are summed in registers before they are added
to what lies in memory, and what follows from the sums is computed with the last. Where rows are left over, the last
lane computes them one by one.
"""

from __future__ import annotations

from typing import Any

from eshkol.atlas.program import LaunchConfig
from eshkol.graph.node import Node
from eshkol.ops.elementwise import mul
from eshkol.ops.shapes import count
from eshkol.ops.structural import CONST
from eshkol.schedule.kernels.costs import weight
from eshkol.schedule.kernels.kernel import Kernel, core_block
from eshkol.schedule.kernels.reads import Read, Write
from eshkol.schedule.kernels.rows import PICK, Phases, Writer, merge, neutral, operation, working
from eshkol.schedule.kernels.scalars import Scalar
from eshkol.schedule.kernels.space import Point, spread
from eshkol.schedule.kernels.values import read_key, straight
from eshkol.support.extents import Extent

ROWS = 4  # of results at a time
AT_ONCE = range(10, 4, -1)  # terms: so many that none are left over, or
USUALLY = 8
MOST = 128
MOST_EXACT = 1 << 13
NARROWEST = 64  # columns
DEAREST = 4  # instructions of a term, which is written out for each row and term

Totals = dict[Node, Scalar]  # of reductions, for one row


def tiles_kernel(group: Any, phases: Phases) -> Kernel | None:
    """The kernel of a group; None where it is none of these."""
    runs, target = phases.runs, group.target
    if [keep for _, keep in runs] != [True, False, True] or any(type(n) is Extent for n, _ in runs):
        return None
    (rows, _), (terms, _), (columns, _) = runs
    rounds = any(node.dtype.is_float for node in phases.reductions)  # then few terms are added one after another
    if (
        not 1 < terms <= (MOST if rounds else MOST_EXACT)
        or columns < NARROWEST
        or rows < target.busy
        or not _suits(group, phases)
    ):
        return None
    return _Tiles(group, phases, min(ROWS, rows // target.busy), rows, terms, columns).kernel()


def _suits(group: Any, phases: Phases) -> bool:
    """Whether terms are cheap and every operand of theirs is repeated, and worth being kept in registers."""
    inside = set(group.nodes)
    read = [x for node in phases.full for x in node.inputs if x not in inside and x.op is not CONST]
    repeated = all(count(x.shape) < phases.whole and not x.dtype.is_complex for x in read)
    plain = repeated and not phases.full_outs and all(node.op.elementwise for node in phases.full)
    picks = any(node.op.name == PICK for node in phases.row)
    return plain and not picks and sum(map(weight, phases.full)) <= DEAREST


class _Tiles:
    def __init__(self, group: Any, phases: Phases, height: int, rows: int, terms: int, columns: int) -> None:
        self.phases, self.height, self.terms, self.columns = phases, height, terms, columns
        self.lanes, self.rest = divmod(rows, height)
        self.w = w = Writer(group, phases, self.lanes)
        self.alike = self._alike()
        free = list(group.outs)  # memory in which sums may grow: no input lies there
        self.sums: dict[Node, Write] = {}
        for k, node in enumerate(phases.reductions):
            host = next((n for n in free if n.dtype is working(node)), None)
            if host is not None:
                free.remove(host)
            self.sums[node] = w.part(f"part{k}", working(node), phases.lanes) if host is None else w.writes[host]

    def kernel(self) -> Kernel:
        e = self.w.e
        first = e.lane * self.height
        self._tile([first + r for r in range(self.height)])
        if self.rest:
            last = e.compare("EQ", e.lane, self.lanes - 1)
            with e.counted(e.select(last, e.number(self.rest), e.number(0))) as r:
                self._tile([e.at_most(r, self.rest - 1) + self.lanes * self.height])
        block = core_block(self.w.group.target, self.height * self.terms * self.columns)
        return self.w.kernel(LaunchConfig.linear(self.lanes, block), fixed=True)

    def _tile(self, rows: list[Scalar]) -> None:
        """Rows of results, from one end to the other: some terms of each at a time, and with the last what follows."""
        e, reductions = self.w.e, self.phases.reductions
        step = next((n for n in AT_ONCE if self.terms % n == 0), USUALLY)
        last = self.terms % step or min(step, self.terms)
        if last < self.terms:
            with e.counted(self.columns) as column:
                for node in reductions:
                    for place in self._places(rows, column):
                        self.sums[node].store(place, neutral(node))
            with e.counted((self.terms - last) // step) as q, e.counted(self.columns) as column:
                self._add(rows, column, [q * step + t for t in range(step)])
        with e.counted(self.columns) as column:
            terms = [e.number(t) for t in range(self.terms - last, self.terms)]
            self._finish(rows, column, self._terms(rows, column, terms, begun=last < self.terms))

    def _places(self, rows: list[Scalar], column: Scalar) -> list[Scalar]:
        return [row * self.columns + column for row in rows]

    def _add(self, rows: list[Scalar], column: Scalar, terms: list[Scalar]) -> None:
        """Take terms of a column together with those before them."""
        found = self._terms(rows, column, terms, begun=True)
        for place, totals in zip(self._places(rows, column), found, strict=True):
            for node, total in totals.items():
                self.sums[node].store(place, total)

    def _terms(self, rows: list[Scalar], column: Scalar, terms: list[Scalar], *, begun: bool) -> list[Totals]:
        """Some terms of a column taken together, for each row; and with those before them, where there are some."""
        w, e, totals = self.w, self.w.e, [Totals() for _ in rows]
        for term in terms:
            points = [w.point([row, column], [term]) for row in rows]
            for key, (x, whole) in self.alike.items():
                read = w.values.seen(x, whole, points[0])
                for point in points:
                    point.known[key] = read
            for total, point in zip(totals, points, strict=True):
                for node in self.phases.reductions:
                    total[node] = self._more(node, total.get(node), point)
        for place, total in zip(self._places(rows, column), totals, strict=True):
            for node in self.phases.reductions:
                before = self.sums[node].load(place) if begun else e.constant(neutral(node), working(node))
                total[node] = merge(e, node, before, total[node])
        return totals

    def _finish(self, rows: list[Scalar], column: Scalar, totals: list[Totals]) -> None:
        """What follows from the reductions of a column, for each row."""
        places = self._places(rows, column)
        for place, total in zip(places, totals, strict=True):
            for node, value in self._results(place, total).items():
                self.w.store(node, place, value)

    def _more(self, node: Node, total: Scalar | None, point: Point) -> Scalar:
        """A reduction with the term at a point; to what there is a product is added as it is, rounded once."""
        w, (x,) = self.w, node.inputs
        is_product = x.op is mul and x.dtype is working(node) and x in w.values.nodes
        if total is not None and operation(node) == "Sum" and is_product:
            return w.e.op("FMA", *(w.values.seen(factor, x.shape, point) for factor in x.inputs), total)
        term = w.e.convert(w.values.seen(x, x.shape, point), working(node))
        return term if total is None else merge(w.e, node, total, term)

    def _alike(self) -> dict[Any, tuple[Node, Any]]:
        """Inputs that are repeated along the rows of results."""
        found = {}
        for node in self.phases.full:
            for x in straight(node):
                repeated = spread(x.shape, node.shape)
                if isinstance(self.w.values.reads.get(x), Read) and repeated[:1] == ((self.phases.runs[0][0], False),):
                    found[read_key(x, node.shape)] = x, node.shape
        return found

    def _results(self, place: Scalar, totals: Totals) -> dict[Node, Scalar]:
        """What follows from the reductions of one row, at its place."""
        w = self.w
        w.values.rows = {node: w.e.convert(total, node.dtype) for node, total in totals.items()}
        w.row_point = Point(w.e, (self.phases.lanes,), (place,))
        w.compute_rows()
        found, w.values.rows = w.values.rows, {}
        return {n: found[n] for n in w.group.outs}
