"""Which nodes are computed by one kernel.

Comes in: nodes in the order in which they can be computed, and those whose values must be there at the end. Goes out:
an order in steps, a step being a node by itself or a `Group`. A node of a group is written to memory only if something
outside the group needs it; the others live in registers.

Elementwise nodes of one shape are computed together, with what only says where their elements come from (`Op.moves`),
and with rows that are joined of such nodes, each of which is a stretch of the kernel's row. Reductions are computed
with what they read. Where the elements of a row lie together, what follows reductions and reads the row again is
computed too, while the row is in the cache: softmax and layer norm are one kernel. Every node of such a group is *full*
(an element for each of the group's), of a *row* (an element for each row) or *bent*: computed at another index than
that of the element at hand, because what reads it moves elements.

Nodes are taken from the last to the first, and each joins the groups of its users or begins a group. A group is
computed where its last node stands; so a node may join one if everything else that reads it comes after. Cheap nodes
that several groups read are computed in each; because of others, elementwise groups become one, if the earlier can
wait. All of it takes time proportional to the number of edges.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from eshkol.atlas.machines import MachineDescription
from eshkol.graph.node import Node
from eshkol.ops.movement import expand
from eshkol.ops.padding import BORDERED
from eshkol.ops.row import Pull, Shape
from eshkol.ops.shapes import count
from eshkol.ops.structural import CONST
from eshkol.schedule.kernels.costs import dear, weight
from eshkol.schedule.kernels.elements import interleaves, joins_rows
from eshkol.schedule.kernels.kernel import is_complex, lowering
from eshkol.schedule.kernels.rows import PICK
from eshkol.schedule.kernels.space import Pattern, columns, reduced, rows, spread
from eshkol.schedule.kernels.takes import TAKEN, in_range, one_in_each_row, single
from eshkol.schedule.kernels.values import JOINED, SAME
from eshkol.support import flags

MOST_CODE = 400  # instructions of a kernel: larger ones take long to compile and run out of registers
MOST_NODES = 400  # of a group: what costs no instructions counts here
MOST_INPUTS = 24
MOST_LOOPS = 8  # reductions one after another: each goes over the row again, and computes again what is before it
MOST_BENDS = 12  # nodes one after another that move elements: each is written within the code of the next
MOST_NUMBERS = 64  # constants and results of reductions: each stays in a register, from one end to the other
MOST_COPIES = 2  # of an element that is computed from others: what neighbours ask for more often is written and read
CHEAP = 6  # instructions up to which a node is rather computed in several groups than written and read
LONG_ROW = 64  # elements from which on going over a row costs no more than going over all elements at once
FEW = 1 << 10  # elements up to which a step costs more than what it computes
SOURCES = 8  # nodes behind a reduction that are looked at for what other groups read too
FEW_TAKES = 2  # groups that rather take the same elements than have them written
SIBLINGS = 4  # groups that are looked at for one that reads the same

FULL, ROW, BENT = "full", "row", "bent"


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes that one kernel computes, in order.

    `kind` is "elementwise" (over the elements of a shape), "rows" (row by row, in `rows.py`) or "parts" (reductions in
    parts, in `parts.py`); of the latter two, `runs` says what a row is.
    """

    nodes: tuple[Node, ...]
    outs: tuple[Node, ...]  # those written to memory
    inputs: tuple[Node, ...]  # what they read that is not among them
    shape: Shape  # of an elementwise group; of the others, what is reduced
    target: MachineDescription
    kind: str = "elementwise"
    runs: Pattern = ()


@dataclass(eq=False, slots=True)
class _Growing:
    """A group while nodes join it, from its last to its first."""

    shape: Shape
    last: int  # the place of its last node in the order: where it is computed
    kind: str
    runs: Pattern
    size: int  # elements
    lanes: int  # rows; where nothing is reduced, elements
    code: int = 0
    members: list[Node] = field(default_factory=list)
    roles: dict[Node, set[str]] = field(default_factory=dict)
    stored: list[Node] = field(default_factory=list)
    reads: set[Node] = field(default_factory=set)
    numbers: set[Node] = field(default_factory=set)  # constants that are read, and results of reductions
    loops: dict[Node, int] = field(default_factory=dict)  # reductions on the longest way from a node to the end
    bends: dict[Node, int] = field(default_factory=dict)  # likewise, nodes that move elements
    indices: dict[Node, set[int]] = field(default_factory=dict)  # at which a node is computed, by number; 0 is its own


def steps(order: Sequence[Node], kept: set[Node], target: MachineDescription) -> list[Node | Group]:
    """The nodes with those that are computed together in groups, in an order in which they can be computed."""
    found = _Fusion(order, kept, target).steps()
    if flags.dumps("fuse"):
        print("\n".join(map(described, found)), file=sys.stderr)
    return found


def smaller(group: Group) -> list[Node | Group]:
    """A group that needs more registers than there are, in steps of at most half as many nodes."""
    return _Fusion(group.nodes, set(group.outs), group.target, most_nodes=max(1, len(group.nodes) // 2)).steps()


def described(step: Node | Group) -> str:
    """A step in one line: what it computes from what."""
    if isinstance(step, Node):
        return f"{step.op.name} {step.dtype}{list(step.shape)}"
    written = ", ".join(f"{n.op.name} {n.dtype}" for n in step.outs)
    how = "together" if step.kind == "elementwise" else f"in {step.kind}"
    return f"{how} over {list(step.shape)}: {' '.join(n.op.name for n in step.nodes)}; writes {written}"


def kind_of(runs: Pattern, target: MachineDescription) -> str:
    """How a group with such rows is computed: row by row, or in parts."""
    lanes = rows(runs)
    in_parts = runs[-1][1] or (lanes < target.busy and lanes * columns(runs) >= target.long)
    return "parts" if in_parts else "rows"


# --- single nodes ---------------------------------------------------------------------------------


def _maps(node: Node, target: MachineDescription) -> bool:
    """Whether a node is elementwise or moves elements, and may be computed with others."""
    op = node.op
    if not (op.elementwise or op.moves or joins_rows(node, target)) or node.outs is not None or not count(node.shape):
        return False
    return not (op.traps and node.dtype.is_integer) and type(lowering(node)) is Pull


def _reduces(node: Node, target: MachineDescription) -> Pattern | None:
    """What a reduction, or the choice of one element of each row, says about rows; None for other nodes."""
    name = node.op.name
    if name == PICK:
        return _picks(node, target)
    if node.op.reduces is None or type(lowering(node)) is not Pull:
        return None
    (x,) = node.inputs
    runs = reduced(x.shape, node.attrs.axes)
    if not count(x.shape) or columns(runs) == 1:
        return None
    return runs


def _picks(node: Node, target: MachineDescription) -> Pattern | None:
    """The rows of an op that takes one element of each: at places that are known to be in range."""
    x, places = node.inputs
    if not one_in_each_row(x, places, node.attrs) or not in_range(places, x.shape[-1]) or is_complex(node):
        return None
    runs = reduced(x.shape, (len(x.shape) - 1,))
    return runs if columns(runs) > 1 and kind_of(runs, target) == "rows" else None


def _moving(node: Node) -> bool:
    """Whether a node asks for its input at another index than its own."""
    op = node.op
    return (op.moves and not op.elementwise and op is not expand) or _joins(node)


def _joins(node: Node) -> bool:
    return node.op in JOINED


def _bends(node: Node) -> bool:
    """Whether a node is rather computed wherever it is read: rows that are taken are worth a row at a time."""
    return node.op.moves and (node.op is not TAKEN or single(node))


# --- groups ---------------------------------------------------------------------------------------


class _Fusion:
    """The nodes of an order on their way into groups."""

    def __init__(
        self, order: Sequence[Node], kept: set[Node], target: MachineDescription, most_nodes: int = MOST_NODES
    ) -> None:
        self.kept, self.target, self.most_nodes = kept, target, most_nodes
        self.runs = {node: runs for node in order if (runs := _reduces(node, target)) is not None}
        self.maps = {node for node in order if _maps(node, target)}
        self.tags: dict[Node, Pattern] = {}  # of what has one element for each row of a reduction before it
        self.origin: dict[Node, Node] = {}  # that reduction
        for node in order:
            self._tag(node)
        self.order = self._early(order)
        self.place = {node: k for k, node in enumerate(self.order)}
        self.users: dict[Node, list[Node]] = {node: [] for node in order}
        for node in self.order:
            for x in dict.fromkeys(node.inputs):
                if x in self.users:
                    self.users[x].append(node)
        self.fresh = itertools.count(1)  # numbers of indices
        self.groups: dict[Node, list[_Growing]] = {}  # to which each node belongs
        self.alone: dict[Node, int] = {}  # steps by themselves, and from which place on their inputs are read
        self.readers: dict[Node, list[_Growing]] = {}

    def _early(self, order: Sequence[Node]) -> list[Node]:
        """The order with reductions, and what follows from them, right after what they need.

        Their results are small, so they take little room while they wait; what they are computed from can be computed
        with them and still be there for what comes next. What is picked from rows stays where it is: a loss can wait
        for the gradients, with which it is computed.
        """
        rank: dict[Node, int] = {}
        for k, node in enumerate(order):
            inputs = [rank[x] for x in node.inputs if x in rank]
            early = node in self.tags and self.origin[node].op.name != PICK
            rank[node] = max(inputs) if early and inputs else k
        return sorted(order, key=rank.__getitem__)

    def _tag(self, node: Node) -> None:
        if node in self.runs:
            self.tags[node], self.origin[node] = self.runs[node], node
        elif (node in self.maps or node.op in SAME) and not _moving(node):
            for x in node.inputs:
                if x in self.tags and count(x.shape) == count(node.shape):
                    self.tags[node], self.origin[node] = self.tags[x], self.origin[x]
                    return

    def steps(self) -> list[Node | Group]:
        for node in reversed(self.order):
            if node.op in SAME:
                self._pass_on(node)
            elif node in self.maps or node in self.runs:
                self.groups[node] = self._joined(node)
            else:
                self.alone[node] = self.place[node]
        found: list[Node | Group] = []
        there = set(self.order)
        for k, node in enumerate(self.order):
            if node in self.alone and (node.op not in SAME or node.inputs[0] not in there):
                self._put(found, node)
            for g in self.groups.get(node, ()):
                if g.last == k and g.members[0] is node:
                    self._put(found, _finished(g, self.target))
        return found

    def _put(self, found: list[Node | Group], step: Node | Group) -> None:
        """Append a step, and the nodes that are what it gives under another shape."""
        found.append(step)
        stack = list(step.outs if isinstance(step, Group) else (step,))
        while stack:
            more = [u for u in self.users[stack.pop()] if u.op in SAME and u in self.alone]
            found += more
            stack += more

    def _pass_on(self, node: Node) -> None:
        """A node that is its input: it belongs to the groups that read it, and is a step if others do."""
        users = self.users[node]
        mine = []
        readers = [self.alone[u] for u in users if u in self.alone]
        for g, roles in self._roles(node).items():
            if roles and self._fits(g, node, 0):
                self._join(g, node, roles, 0, False)
                mine.append(g)
            else:
                readers.append(g.last)
        if mine:
            self.groups[node] = mine
        if node in self.kept or readers or not users:
            self.alone[node] = min(readers, default=len(self.order))

    def _behind(self, users: Sequence[Node], g: _Growing) -> bool:
        """Whether all steps that read a node, but for the group itself, come after a group."""
        for u in users:
            if u in self.alone and self.alone[u] <= g.last:
                return False
            if any(h is not g and h.last <= g.last for h in self.groups.get(u, ())):
                return False
        return True

    def _joined(self, node: Node) -> list[_Growing]:
        """The groups that a node belongs to: those of its users, one of them, or a new one."""
        users = self.users[node]
        inside = self._roles(node)
        code = weight(node) if node in self.maps else 4
        stored = node in self.kept or any(u in self.alone for u in users)
        if len(inside) > 1 and not self._cheap(node, code, len(inside)):
            inside = self._merged(inside, code)
        if inside:
            whole = not stored and all(inside.values()) and (len(inside) == 1 or self._cheap(node, code, len(inside)))
            if whole and all(self._fits(g, node, code) for g in inside):
                for g, roles in inside.items():
                    assert roles
                    self._join(g, node, roles, code, False)
                return list(inside)
            first = min(inside, key=lambda g: g.last)
            role = inside[first]
            if role in ({FULL}, {ROW}) and self._fits(first, node, code) and self._behind(users, first):
                assert role
                self._join(first, node, role, code, True)
                return [first]
        sibling = self._sibling(node, code)
        if sibling is not None:
            self._join(sibling, node, {ROW if node in self.tags else FULL}, code, True)
            return [sibling]
        return [self._begun(node, code)]

    def _merged(self, inside: dict[_Growing, set[str] | None], code: int) -> dict[_Growing, set[str] | None]:
        """The groups that read a node, of which elementwise ones have become one where the earlier can wait."""
        free = [g for g, roles in inside.items() if roles == {FULL} and g.kind == "elementwise"]
        late = max(free, key=lambda g: g.last, default=None)
        found = dict(inside)
        for g in free:
            if late is not None and g is not late and self._can_wait(g, late, code):
                self._absorb(late, g)
                del found[g]
        return found

    def _can_wait(self, g: _Growing, late: _Growing, code: int) -> bool:
        """Whether a group may be computed as part of a later one: nothing that needs it comes before."""
        if g.shape != late.shape or not late.reads.isdisjoint(g.members) or g.code + late.code + code > MOST_CODE:
            return False
        if len(g.reads | late.reads) + len(g.stored) + len(late.stored) >= MOST_INPUTS:
            return False
        if len(g.members) + len(late.members) >= self.most_nodes or len(g.numbers | late.numbers) > MOST_NUMBERS:
            return False
        for user in (u for n in g.stored for u in self.users[n]):
            if user in self.alone and self.alone[user] <= late.last:
                return False
            if any(h is not g and h.last <= late.last for h in self.groups.get(user, ())):
                return False
        return True

    def _absorb(self, late: _Growing, g: _Growing) -> None:
        """Compute the members of a group in a later one."""
        for node in g.members:
            self.groups[node] = list(dict.fromkeys(late if h is g else h for h in self.groups[node]))
        for x in g.reads:
            self.readers[x] = list(dict.fromkeys(late if h is g else h for h in self.readers[x]))
        late.members = sorted({*late.members, *g.members}, key=self.place.__getitem__, reverse=True)
        late.stored = sorted({*late.stored, *g.stored}, key=self.place.__getitem__, reverse=True)
        for node, roles in g.roles.items():
            late.roles[node] = late.roles.get(node, set()) | roles
        late.reads = (late.reads | g.reads) - set(late.members)
        late.numbers |= g.numbers
        late.loops |= g.loops
        late.bends |= g.bends
        late.indices |= g.indices
        late.code += g.code

    def _begun(self, node: Node, code: int) -> _Growing:
        """A new group of one node."""
        place, runs = self.place[node], self.tags.get(node, ())
        if runs:
            g = _Growing(node.shape, place, kind_of(runs, self.target), runs, rows(runs) * columns(runs), rows(runs))
        else:
            size = count(node.shape)
            g = _Growing(node.shape, place, "elementwise", (), size, size)
        self._join(g, node, {ROW if runs else FULL}, code, True)
        return g

    def _cheap(self, node: Node, code: int, groups: int) -> bool:
        """Whether a node is rather computed in several groups than written and read."""
        if node.op.moves:
            return node.op is not TAKEN or groups <= FEW_TAKES
        large = [x for x in node.inputs if x.op is not CONST and count(x.shape) == count(node.shape)]
        if code > CHEAP or groups > 4 or node in self.tags:
            return False
        if len(large) <= 1:  # which is then read instead
            return True
        return groups == len(large) == 2 and all(len(self.groups.get(u, ())) <= 1 for u in self.users[node])

    # --- whether a node fits ------------------------------------------------------------------------

    def _roles(self, node: Node) -> dict[_Growing, set[str] | None]:
        """What a node would be in each group whose members read it; None if they cannot read it there."""
        found: dict[_Growing, set[str] | None] = {}
        for u in self.users[node]:
            for g in self.groups.get(u, ()):
                mine = found.setdefault(g, set())
                for role in g.roles[u] if mine is not None else ():
                    wanted = self._role(g, node, u, role)
                    if wanted is None:
                        found[g] = None
                        break
                    assert mine is not None
                    mine.add(wanted)
        return {g: roles if roles and self._allowed(g, node, roles) else None for g, roles in found.items()}

    def _allowed(self, g: _Growing, node: Node, roles: set[str]) -> bool:
        if len(roles) > 1 and ROW in roles:
            return False
        if _joins(node) and g.kind != "elementwise":
            return False  # there are no stretches in kernels of rows
        if node in self.runs:  # where there are no rows yet, they are the node's
            return roles == {ROW} and g.runs in ((), self.runs[node]) and not any(map(_joins, g.members))
        return BENT not in roles or self._can_bend(g, node)

    def _can_bend(self, g: _Growing, node: Node) -> bool:
        """Whether a node may be computed at any index: one that moves, or one of the group's own elements."""
        if _bends(node) or node.op in SAME or (count(node.shape) == g.size and node.op is not TAKEN):
            return True
        if dear(node) and any(member.op is BORDERED for member in g.members):
            return False  # at the ends of rows, and for rows that are there twice, it would be computed once more
        if dear(node) and any(interleaves(member) for member in g.members):
            return False  # it would be computed one by one, rather than in vectors
        return node.op.elementwise and all(self._in_piece(g, u, node) for u in self.users[node] if u in g.roles)

    def _in_piece(self, g: _Growing, user: Node, node: Node) -> bool:
        """Whether a member of a group reads a node as a piece of rows that are joined, or as part of one."""
        if user.op in SAME:
            readers = [u for u in self.users[user] if u in g.roles]
            return bool(readers) and all(self._in_piece(g, u, user) for u in readers)
        return _joins(user) or (g.roles[user] == {BENT} and user.shape == node.shape and user.op.elementwise)

    def _role(self, g: _Growing, node: Node, user: Node, role: str) -> str | None:
        if role == BENT or _moving(user):
            return BENT
        if user in self.runs:
            if user.op.name == PICK and node is not user.inputs[0]:
                return ROW if node is user.inputs[1] and count(node.shape) == g.lanes else None
            return FULL
        size = count(node.shape)
        if role == ROW:
            return ROW if size == g.lanes else BENT if _bends(node) and node not in self.tags else None
        if size == g.size:
            return FULL
        if self._by_row(g, node, user):
            return ROW
        return BENT if _bends(node) and node not in self.tags else None

    def _by_row(self, g: _Growing, node: Node, user: Node) -> bool:
        """Whether a full member of a group reads a node that has one element for each row, and may do so."""
        if g.kind == "parts" or user.op in SAME:
            return False
        runs = spread(node.shape, user.shape)
        if g.kind == "rows":
            return runs == g.runs
        wanted = self.tags.get(node)
        return (
            wanted is not None
            and runs == wanted
            and kind_of(runs, self.target) == "rows"
            and count(user.shape) == g.size
        )

    def _fits(self, g: _Growing, node: Node, code: int) -> bool:
        copies = self._copies(g, node)
        if g.code + code * copies > MOST_CODE or len(g.members) >= self.most_nodes:
            return False
        if copies > MOST_COPIES and self._is_computed(node):
            return False  # all that is behind it would be computed as often, and as often again behind its like
        if self._bends(g, node) > MOST_BENDS:
            return False
        if node in self.runs and self._loops(g, node) > MOST_LOOPS:
            return False
        numbers = g.numbers | self._numbers(node)
        reads = (g.reads - {node}) | {x for x in node.inputs if x.op is not CONST}
        return len(numbers) <= MOST_NUMBERS and len(reads) + len(g.stored) < MOST_INPUTS

    def _is_computed(self, node: Node) -> bool:
        """Whether a node is arithmetic on what is computed, too."""
        if node.op.moves or not node.op.elementwise:
            return False
        return any(x in self.maps and count(x.shape) == count(node.shape) for x in node.inputs)

    def _loops(self, g: _Growing, node: Node) -> int:
        """The reductions of a group on the longest way from a node to its end, the node among them."""
        return max((g.loops.get(u, 0) for u in self.users[node]), default=0) + (node in self.runs)

    def _bends(self, g: _Growing, node: Node) -> int:
        """The nodes of a group that move elements, on the longest way from a node to its end."""
        return max((g.bends[u] + _moving(u) for u in self.users[node] if u in g.bends), default=0)

    def _copies(self, g: _Growing, node: Node) -> int:
        """At how many indices a node is computed in a group: users at one index share it, each that moves asks anew."""
        users = [u for u in self.users[node] if u in g.indices]
        moved = sum(len(g.indices[u]) * u.inputs.count(node) for u in users if _moving(u))
        return moved + len(set().union(*(g.indices[u] for u in users if not _moving(u)))) or 1

    def _numbers(self, node: Node) -> set[Node]:
        """What stays in a register all along if a node is computed: constants, and the result of a reduction."""
        found = {x for x in node.inputs if x.op is CONST}
        return found | {node} if node in self.runs else found

    def _sibling(self, node: Node, code: int) -> _Growing | None:
        """A group that reads what a node reads, over the same elements, and can compute it too."""
        runs = self.tags.get(node, ())
        whole = self.origin[node].inputs[0].shape if runs else node.shape
        for x in self._sources(self.origin[node].inputs if runs else node.inputs, count(whole), bool(runs)):
            for g in self.readers.get(x, [])[-SIBLINGS:]:
                if self._alike(g, runs, whole) and x in g.reads and self._fits(g, node, code):
                    users = self.users[node]
                    if self._behind(users, g) and not any(g in self.groups.get(u, ()) for u in users):
                        return g
        return None

    def _sources(self, first: Sequence[Node], size: int, further: bool) -> list[Node]:
        """Nodes of a size from which others are computed, and, further back, those from which these are."""
        found = list(dict.fromkeys(x for x in first if count(x.shape) == size))
        for x in found:
            if not further or len(found) >= SOURCES or x not in self.maps:
                break
            found += [y for y in x.inputs if count(y.shape) == size and y not in found]
        return found

    def _alike(self, g: _Growing, runs: Pattern, whole: Shape) -> bool:
        """Whether a group goes over the elements of a shape in rows of a pattern (or in any), or can."""
        if g.runs == runs:
            return bool(runs) or g.shape == whole
        long = columns(g.runs or runs) >= LONG_ROW or g.size <= FEW
        return g.size == count(whole) and long and not (g.runs and runs)

    def _join(self, g: _Growing, node: Node, roles: set[str], code: int, stored: bool) -> None:
        if roles == {ROW} and not g.runs:  # what has one element for each row makes rows of the group's elements
            g.runs = self.tags[node]
            g.kind, g.lanes = kind_of(g.runs, self.target), rows(g.runs)
        g.members.append(node)
        g.roles[node] = roles
        g.loops[node], g.bends[node] = self._loops(g, node), self._bends(g, node)
        shared = set().union(*(g.indices[u] for u in self.users[node] if u in g.indices and not _moving(u)))
        shared = shared or ({0} if not any(u in g.indices for u in self.users[node]) else shared)
        copies = self._copies(g, node)
        g.code += code * copies
        g.indices[node] = shared | {next(self.fresh) for _ in range(copies - len(shared))}
        g.numbers |= self._numbers(node)
        g.reads.discard(node)
        for x in node.inputs:
            if x.op is not CONST and x not in g.reads:
                g.reads.add(x)
                self.readers.setdefault(x, []).append(g)
        if stored:
            g.stored.append(node)


def _finished(g: _Growing, target: MachineDescription) -> Node | Group:
    nodes = tuple(reversed(g.members))
    reductions = [n for n in nodes if n.op.reduces is not None or n.op.name == PICK]
    kind, runs, shape = g.kind, g.runs, g.shape
    if not reductions and all(count(n.shape) != g.size for n in nodes):
        kind, runs = "elementwise", ()  # the reductions are elsewhere, and here is what follows from them
    if len(nodes) == 1 and not runs:
        return nodes[0]
    if runs:
        full = (n.shape for n in (*nodes, *(n.inputs[0] for n in reductions)) if count(n.shape) == g.size)
        shape = next(full)
    inside = set(nodes)
    inputs = tuple(dict.fromkeys(x for n in nodes for x in n.inputs if x not in inside))
    return Group(nodes, tuple(reversed(g.stored)), inputs, shape, target, kind, runs)
