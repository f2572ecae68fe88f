"""The ring of stages that bring slabs of operands to shared memory, and the instructions that multiply them.

Comes in: a kernel under construction and where its barriers lie. Goes out: code of one thread that has slabs copied
by the machine (TMA), and of groups of four warps that wait for a slab, multiply from it, and give its stage back.

Each stage has two barriers in shared memory. The first is passed when all bytes of a slab have arrived; the second when
all groups, of all blocks of a cluster, have done with it: a block of a cluster sends a share of what both need to both.
"""

from __future__ import annotations

from collections.abc import Sequence

from eshkol.atlas.types import Type
from eshkol.backends.cuda.warpgroups.ptx import GROUP, Kernel, listed

BARRIER_BYTES = 8
ROWS, TERMS = 64, 16  # of what a group multiplies at once
NAMES = {Type.BF16: "bf16", Type.F16: "f16"}  # of types that it multiplies
REGISTERS = {1: None, 2: (24, 240), 3: (32, 160)}  # groups → registers of threads that copy, and that multiply
SWIZZLE_ROWS, LINE = 8, 128  # rows whose chunks of 16 bytes are exchanged, and bytes of a row, in shared memory
ATOM = SWIZZLE_ROWS * LINE
_SWIZZLED = 1 << 62  # the mark, in the description of a matrix in shared memory, of rows of 128 bytes so exchanged


class Ring:
    """So many stages; barriers lie from a byte of shared memory on."""

    def __init__(self, k: Kernel, base: str, stages: int, readers: int, blocks: int, *, fillers: int = 1) -> None:
        """So many fill a stage, and give it back. `blocks` of a cluster bring slabs to each other."""
        self.k, self.base, self.stages, self.readers, self.blocks = k, base, stages, readers, blocks
        self.fillers = fillers

    @property
    def size(self) -> int:
        return 2 * self.stages * BARRIER_BYTES

    def prepare(self) -> None:
        """Set the barriers up: for one thread of a block, before anybody waits."""
        for stage in range(self.stages):
            self.k.do("mbarrier.init.shared::cta.b64", f"[{self.base}+{stage * BARRIER_BYTES}]", self.fillers)
            after = (self.stages + stage) * BARRIER_BYTES
            self.k.do("mbarrier.init.shared::cta.b64", f"[{self.base}+{after}]", self.readers * self.blocks)
        self.k.lines.append("    fence.mbarrier_init.release.cluster;")

    def begin(self, *, filled: bool) -> Place:
        """A place in the ring to begin with: for who fills stages all are free, as if they had been given back."""
        k = self.k
        return Place(self, k.op("mov.u32", 0), k.op("mov.u32", 0 if filled else 1))


class Place:
    """The stage that comes next for a thread, and the parity of the round that it waits for."""

    def __init__(self, ring: Ring, stage: str, parity: str) -> None:
        self.ring, self.k, self.stage, self.parity = ring, ring.k, stage, parity

    def full(self) -> str:
        return self.k.op("mad.lo.u32", self.stage, BARRIER_BYTES, self.ring.base)

    def free(self) -> str:
        return self.k.add(self.full(), self.ring.stages * BARRIER_BYTES)

    def wait(self, barrier: str) -> None:
        wait_for(self.k, barrier, self.parity)

    def advance(self) -> None:
        """Go on to the next stage; behind the last comes the first, of the next round."""
        k = self.k
        k.do("add.u32", self.stage, self.stage, 1)
        last = k.equal(self.stage, self.ring.stages)
        k.do("selp.u32", self.stage, 0, self.stage, last)
        k.do("xor.b32", self.parity, self.parity, 1, when=last)


def wait_for(k: Kernel, barrier: str, parity: str, order: str = "") -> None:
    """Wait until a round of a barrier, of a parity, is over; `order` says what is seen then."""
    again, end = k.label(), k.label()
    k.place(again)
    done = k.register("pred")
    k.do(f"mbarrier.try_wait.parity.{order}shared::cta.b64", done, f"[{barrier}]", parity)
    k.do("bra", end, when=done)
    k.do("bra", again)
    k.place(end)


def expect(k: Kernel, barrier: str, size: int) -> None:
    """Let a barrier wait for so many bytes."""
    k.do("mbarrier.arrive.expect_tx.shared::cta.b64", "_", f"[{barrier}]", size)


def bring(
    k: Kernel, target: str, tensor: str, at: Sequence[str], barrier: str, mask: str | None = None,
    tap: Sequence[str] = (),
) -> None:  # fmt: skip
    """Begin to copy a box of a tensor to shared memory, of all blocks of a cluster whose bits are set in a mask.

    Where the tensor's map is one of windows, what the tap of each is that lies so far from where it begins.
    """
    shared = f"[{target}], [{tensor}, {listed(at)}], [{barrier}]" + (f", {listed(tap)}" if tap else "")
    mode = ".im2col" if tap else ""
    name = f"cp.async.bulk.tensor.{len(at)}d.shared::cluster.global{mode}.mbarrier::complete_tx::bytes"
    if mask is None:
        k.lines.append(f"    {name} {shared};")
    else:
        k.lines.append(f"    {name}.multicast::cluster {shared}, {mask};")


def send(k: Kernel, tensor: str, at: Sequence[str], source: str) -> None:
    """Begin to copy a box of shared memory to a tensor; what lies outside of it is left out."""
    k.lines.append(
        f"    cp.async.bulk.tensor.{len(at)}d.global.shared::cta.bulk_group [{tensor}, {listed(at)}], [{source}];"
    )


def give_back(k: Kernel, barrier: str, blocks: int, first: str) -> None:
    """Say at a barrier, of each block of the cluster, that a group has done with its stage; by the group's threads.

    `first` is the number of a thread in its group: one of them speaks to each block.
    """
    if blocks == 1:
        k.do("mbarrier.arrive.shared::cta.b64", "_", f"[{barrier}]", when=k.equal(first, 0))
        return
    with k.only(k.less(first, blocks)):
        there = k.op("mapa.shared::cluster.u32", barrier, first)
        k.do("mbarrier.arrive.shared::cluster.b64", "_", f"[{there}]")


def tell(k: Kernel, barrier: str, blocks: int, first: str, thread: str) -> None:
    """Say at a barrier of each block of the cluster what a group has written or read, once all its threads have."""
    group = k.op("shr.u32", thread, GROUP.bit_length() - 1)
    k.do("bar.sync", group, GROUP)
    with k.only(k.less(first, blocks)):
        there = k.op("mapa.shared::cluster.u32", barrier, first)
        k.do("mbarrier.arrive.release.cluster.shared::cluster.b64", "_", f"[{there}]")


# --- products ---------------------------------------------------------------------------------------


def described(k: Kernel, address: str, apart: int) -> str:
    """The description of a matrix in shared memory whose rows are of 128 bytes, their chunks exchanged.

    Where lines lie along the rows, blocks of so many bytes follow each other along the lines.
    """
    low = k.op("shr.u32", k.op("and.b32", address, 0x3FFFF), 4)
    fixed = _SWIZZLED | (ATOM >> 4) << 32 | (apart >> 4) << 16
    return k.op("or.b64", k.op("cvt.u64.u32", low, kind="b64"), fixed, kind="b64")


def multiply(
    k: Kernel, ty: str, sums: Sequence[str], left: str | Sequence[str], right: str, begun: str, *,
    turned: tuple[bool, bool],
) -> None:  # fmt: skip
    """Add the product of 64 rows by 16 terms with 16 terms by columns, four of whose sums each thread has of 8.

    Unless it is begun, a predicate, the sums are those of this product alone. The left factor is described, or lies in
    registers. `turned`: whether lines, not terms, of the left and of the right one are neighbours.
    """
    columns = len(sums) * 2
    described = isinstance(left, str)
    flags = ", ".join(str(int(t)) for t in (turned if described else turned[1:]))
    name = f"wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.{ty}.{ty}"
    factor = left if isinstance(left, str) else listed(left)
    k.lines.append(f"    {name} {listed(sums)}, {factor}, {right}, {begun}, 1, 1, {flags};")


def fence(k: Kernel) -> None:
    """Before products that add to registers that were written otherwise."""
    k.lines.append("    wgmma.fence.sync.aligned;")


def commit(k: Kernel) -> None:
    k.lines.append("    wgmma.commit_group.sync.aligned;")


def wait(k: Kernel, pending: int) -> None:
    """Wait until no more than so many batches of products are under way."""
    k.do("wgmma.wait_group.sync.aligned", pending)
