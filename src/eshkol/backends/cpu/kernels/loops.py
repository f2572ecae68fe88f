"""The CPU's loops over lanes: the function `kernel(record, first block, last block)` around the code of one lane.

Comes in: what the fast version of a lane relies on (`Promises`), or where lanes wait for each other. Goes out: the text
of the kernel. Lanes are one loop, or each block runs its lanes from barrier to barrier. Then the block's state is a
header of 16 bytes (where it stands), its shared memory, and the saved registers of its lanes. Where lanes wait for the
whole launch (GridSync, PoolAlloc, PoolFree) the host keeps the states of all blocks and calls the kernel again and
again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from eshkol.atlas.operands import BLOCK, LANE, BufferOffset
from eshkol.atlas.program import LANE_LIMIT, Program
from eshkol.backends.cpu.kernels.parallel import Loops
from eshkol.backends.lanes import layout as words
from eshkol.backends.lanes.amounts import computed
from eshkol.backends.lanes.emitter import Emitter, llvm_type
from eshkol.backends.lanes.guards import Guard
from eshkol.backends.lanes.layout import Layout
from eshkol.backends.lanes.module import INVARIANT, SCALAR_LOOP
from eshkol.backends.lanes.ranges import SHARED_MEMORY, Bound, Ranges

ENDED = -1  # of a block's header: all its lanes have
RUNTIME = {
    "malloc": "declare ptr @malloc(i64)",
    "free": "declare void @free(ptr)",
    "llvm.umin.i32": "declare i32 @llvm.umin.i32(i32, i32)",
}


class KernelText(Emitter):
    """The kernel function's own code: words of the record, counted loops."""

    def word(self, number: int, llvm: str = "i64") -> str:
        place = self.offset("%args", number, "i64")
        return self.load(llvm, place, INVARIANT)

    def block_size(self) -> str:
        x, y, z = (self.word(words.BLOCK + axis) for axis in range(3))
        return self.op(f"mul i64 {self.op(f'mul i64 {x}, {y}')}, {z}")

    def least(self, a: str, b: str) -> str:
        less = self.op(f"icmp ult i64 {a}, {b}")
        return self.op(f"select i1 {less}, i64 {a}, i64 {b}")

    def loop(self, start: str, stop: str, body: Callable[[str], object], metadata: str = "") -> None:
        """for (i = start; i < stop; i++) body(i)"""
        before, head, inside, after = (self.new_block(hint) for hint in ("pre", "head", "body", "end"))
        self.br(before)
        self.place(before)
        self.br(head)
        self.place(head)
        index, following, latch = self.name("i"), self.name("n"), self.new_block("latch")
        self.phi(index, "i64", (start, before), (following, latch))
        self.br_if(self.op(f"icmp ult i64 {index}, {stop}"), inside, after)
        self.place(inside)
        body(index)
        self.br(latch)
        self.place(latch)
        self.do(f"{following} = add nuw nsw i64 {index}, 1")
        self.br(head, metadata)
        self.place(after)

    def lane(self, function: str, gid: str, block: str, lane: str, given: str = "") -> str:
        return self.op(
            f"call i32 @{function}(ptr %args, ptr null, ptr null, i64 {gid}, i64 {block}, i64 {lane}, i32 0{given})"
        )

    def function(self, record_bytes: int, attributes: str) -> str:
        # A record that is known to be there lets LLVM fetch its words before loops, needed or not.
        record = f"ptr dereferenceable({record_bytes}) %args"
        return self.defined(f"void @kernel({record}, i64 %begin, i64 %end) nounwind {attributes}", ["  ret void"])


@dataclass(frozen=True)
class Promises:
    """What the fast version of a lane relies on."""

    known: Ranges
    loops: Loops
    early: dict[int, BufferOffset]
    lanes: int | None  # how many there are at most, if the program says so

    @property
    def lanes_below(self) -> int | None:
        """The first lane for which arithmetic might wrap, if there can be one."""
        most = LANE_LIMIT if self.lanes is None else self.lanes
        return self.known.lanes_below if self.known.lanes_below < most else None

    @property
    def hold_always(self) -> bool:
        proven = self.early.keys() <= self.known.proven
        return proven and not self.known.limits and not self.loops.apart and self.lanes_below is None


def _safe_lanes(k: KernelText, layout: Layout, promises: Promises, last: str) -> str:
    """The first lane, up to `last`, for which the promises do not hold."""
    safe = last
    if promises.lanes_below is not None:
        safe = k.least(safe, str(promises.lanes_below))
    for limit in promises.known.limits:
        end = limit.end
        if limit.most == SHARED_MEMORY:
            most = k.word(words.SHARED_BYTES)
        else:
            most = k.word(layout.word(limit.most) + 1) if isinstance(limit.most, str) else str(limit.most)
        if not end.is_plain:
            safe = _computed_limit(k, layout, end, most, safe)
            continue
        room = k.op(f"sub i64 {most}, {end.offset}")
        fits, lanes = k.op(f"icmp sge i64 {room}, 0"), safe
        if end.slope:
            steps = k.op(f"add i64 {k.op(f'sdiv i64 {room}, {end.slope}')}, 1")
            lanes = k.op(f"mul i64 {steps}, {end.over}")
        safe = k.least(safe, k.op(f"select i1 {fits}, i64 {lanes}, i64 0"))
    for (one, other), same in promises.loops.apart.items():
        (start, size), (start2, size2) = ((k.word(layout.word(n)), k.word(layout.word(n) + 1)) for n in (one, other))
        before = k.op(f"icmp ule i64 {k.op(f'add i64 {start}, {size}')}, {start2}")
        behind = k.op(f"icmp ule i64 {k.op(f'add i64 {start2}, {size2}')}, {start}")
        fine = k.op(f"or i1 {before}, {behind}")
        if same:
            fine = k.op(f"or i1 {fine}, {k.op(f'icmp eq i64 {start}, {start2}')}")
        safe = k.op(f"select i1 {fine}, i64 {safe}, i64 0")
    return safe


def _computed_limit(k: KernelText, layout: Layout, end: Bound, most: str, safe: str) -> str:
    """The first lane, up to `safe`, for which a bound that depends on scalar parameters is above a number."""

    def value(name: str) -> str:
        pointer = k.word(layout.word(name), "ptr")
        return k.op(f"zext i32 {k.load('i32', pointer, INVARIANT)} to i128")

    offset, wide = computed(end.offset, k.op, value), k.op(f"zext i64 {most} to i128")
    fits = k.op(f"icmp sle i128 {offset}, {wide}")
    if end.slope == 0:
        return k.op(f"select i1 {fits}, i64 {safe}, i64 0")
    # Where it fits, the distance is at least 0 and below 2^64; no more of it is needed than lets all lanes run.
    slope = computed(end.slope, k.op, value)
    few = k.op(f"icmp slt i128 {slope}, {1 << 62}")
    positive = k.op(f"icmp sgt i128 {slope}, 0")
    step = k.op(f"select i1 {few}, i64 {k.op(f'trunc i128 {slope} to i64')}, i64 {1 << 62}")
    step = k.op(f"select i1 {positive}, i64 {step}, i64 1")
    room = k.least(k.op(f"trunc i128 {k.op(f'sub i128 {wide}, {offset}')} to i64"), str(2 * LANE_LIMIT))
    steps = k.op(f"add i64 {k.op(f'udiv i64 {room}, {step}')}, 1")
    lanes = k.op(f"mul i64 {steps}, {end.over}")
    return k.least(safe, k.op(f"select i1 {fits}, i64 {lanes}, i64 0"))


def one_loop(
    program: Program, layout: Layout, promises: Promises, guard: Guard | None, metadata: str
) -> Callable[[int, str], str]:
    """The kernel of a program without barriers."""
    k = KernelText()
    size = k.block_size()
    first, last = k.op(f"mul i64 %begin, {size}"), k.op(f"mul i64 %end, {size}")
    if guard is not None:
        if isinstance(guard.bound, int):
            bound = str(guard.bound)
        else:
            pointer = k.word(layout.word(guard.bound), "ptr")
            bound = k.load("i64", pointer, INVARIANT)
        last = k.least(last, bound)
    safe = _safe_lanes(k, layout, promises, last)
    given = ""
    for index, place in sorted(promises.early.items()):
        ty, word = program.instructions[index].ty, layout.word(place.handle)
        pointer = k.offset(k.word(word, "ptr"), place.offset)
        if index not in promises.known.proven:
            fits = k.op(f"icmp uge i64 {k.word(word + 1)}, {place.offset + ty.size_bytes}")
            pointer = k.op(f"select i1 {fits}, ptr {pointer}, ptr %args")  # anything, if there is nothing to load
            safe = k.op(f"select i1 {fits}, i64 {safe}, i64 0")
        given += f", {llvm_type(ty)} {k.load(llvm_type(ty), pointer, f', align {ty.alignment}')}"
    if not _needs_position(program):
        k.loop(first, safe, lambda gid: k.lane("lane_fast", gid, "0", "0", given), metadata)
        if promises.hold_always:
            return k.function
        behind = k.op(f"icmp ugt i64 {safe}, {first}")
        rest = k.op(f"select i1 {behind}, i64 {safe}, i64 {first}")
        k.loop(rest, last, lambda gid: k.lane("lane", gid, "0", "0"), SCALAR_LOOP)
        return k.function

    def run_block(block: str) -> None:
        start = k.op(f"mul i64 {block}, {size}")
        stop = k.least(k.op(f"add i64 {start}, {size}"), last)
        count = k.op(f"sub i64 {stop}, {start}")
        some = k.op(f"icmp sgt i64 {count}, 0")
        lanes = k.op(f"select i1 {some}, i64 {count}, i64 0")
        in_range = k.op(f"icmp ule i64 {stop}, {safe}")
        quick = k.op(f"select i1 {in_range}, i64 {lanes}, i64 0")
        fast = lambda lane: k.lane("lane_fast", k.op(f"add i64 {start}, {lane}"), block, lane, given)
        k.loop("0", quick, fast, metadata)
        if not promises.hold_always:
            slow = lambda lane: k.lane("lane", k.op(f"add i64 {start}, {lane}"), block, lane)
            k.loop(quick, lanes, slow, SCALAR_LOOP)

    k.loop("%begin", "%end", run_block)
    return k.function


def block_by_block(
    layout: Layout, together: set[int], metadata: str, *, allocates: bool = True
) -> Callable[[int, str], str]:
    """The kernel of a program with shared memory or barriers: each block runs from one barrier to the next.

    The barriers in `together` are for the whole launch. The metadata is that of loops over lanes. A kernel that
    does not allocate is given memory for the state of one block by the host.
    """
    k, grid_wide = KernelText(), bool(together)
    size, shared_bytes = k.block_size(), k.word(words.SHARED_BYTES)
    padded = k.op(f"and i64 {k.op(f'add i64 {shared_bytes}, 63')}, -64")
    contexts = k.op(f"mul i64 {size}, {layout.context_bytes}")
    stride = k.op(f"add i64 {k.op(f'add i64 {padded}, 64')}, {contexts}")
    allocates = allocates and not grid_wide
    if not allocates:
        states = k.word(words.STATES, "ptr")
    else:
        states, missing, there = k.op(f"call ptr @malloc(i64 {stride})"), k.new_block("missing"), k.new_block("there")
        k.br_if(k.op(f"icmp eq ptr {states}, null"), missing, there)
        k.place(missing)
        k.do(f"call void @fault(ptr %args, i64 0, i64 {layout.site(0, 'no memory for the state of a block of lanes')})")
        k.do("ret void")
        k.place(there)
    divergence = [
        layout.site(index, "divergent barrier: not every lane of the block has come here",
                    "every lane must reach the same barrier: move it out of the branch")
        for index in layout.barriers
    ]  # fmt: skip
    grid_numbers = [n for n, index in enumerate(layout.barriers, 1) if index in together]

    def run_block(block: str) -> None:
        place = k.op(f"mul i64 {block}, {stride}") if grid_wide else "0"
        state = k.offset(states, place)
        shared = k.offset(state, 64)
        context = k.offset(shared, padded)
        if not grid_wide:
            k.store("i32", "0", state)
        rounds, lanes, done = (k.new_block(hint) for hint in ("rounds", "lanes", "done"))
        k.br(rounds)
        k.place(rounds)
        phase = k.load("i32", state)
        k.br_if(k.op(f"icmp eq i32 {phase}, {ENDED}"), done, lanes)
        k.place(lanes)
        result = k.slot("i32", "result")
        k.store("i32", "0", result)

        def run_lane(lane: str) -> None:
            gid = k.op(f"add i64 {k.op(f'mul i64 {block}, {size}')}, {lane}")
            own = k.offset(context, k.op(f"mul i64 {lane}, {layout.context_bytes}"))
            came = k.op(
                f"call i32 @lane(ptr %args, ptr {own}, ptr {shared}, i64 {gid}, i64 {block}, i64 {lane}, i32 {phase})"
            )
            if not divergence:
                return  # without barriers every lane has ended
            before = k.load("i32", result)
            first = k.op(f"icmp eq i64 {lane}, 0")
            same = k.op(f"or i1 {first}, {k.op(f'icmp eq i32 {came}, {before}')}")
            apart, told, joined = (k.new_block(hint) for hint in ("apart", "told", "joined"))
            k.br_if(same, joined, apart)
            k.place(apart)
            # Where this lane or one before it has failed, that is what is wrong. Otherwise one of these two waits: the
            # earlier barrier is named, and who stands there. An ended lane returns 0, which less 1 is the greatest.
            known = k.op(f"lshr i64 {k.op('load atomic i64, ptr %args monotonic, align 8')}, {words.SITE_BITS}")
            k.br_if(k.op(f"icmp ule i64 {known}, {gid}"), joined, told)
            k.place(told)
            here, there = (k.op(f"sub i32 {barrier}, 1") for barrier in (came, before))
            earlier = k.op(f"call i32 @llvm.umin.i32(i32 {here}, i32 {there})")
            number = k.op(f"zext i32 {earlier} to i64")
            back = k.op(f"zext i1 {k.op(f'icmp ult i32 {there}, {here}')} to i64")
            site = k.op(f"add i64 {number}, {divergence[0]}")
            k.do(f"call void @fault(ptr %args, i64 {k.op(f'sub i64 {gid}, {back}')}, i64 {site})")
            k.br(joined)
            k.place(joined)
            k.store("i32", came, result)

        k.loop("0", size, run_lane, metadata)
        last = k.load("i32", result)
        failed = k.op(f"icmp ne i64 {k.op('load atomic i64, ptr %args monotonic, align 8')}, -1")
        over = k.op(f"or i1 {failed}, {k.op(f'icmp eq i32 {last}, 0')}")
        following = k.op(f"select i1 {over}, i32 {ENDED}, i32 {last}")
        k.store("i32", following, state)
        waits = "false"
        for number in grid_numbers:
            waits = k.op(f"or i1 {waits}, {k.op(f'icmp eq i32 {following}, {number}')}")
        k.br_if(waits, done, rounds)
        k.place(done)

    k.loop("%begin", "%end", run_block)
    if allocates:
        k.do(f"call void @free(ptr {states})")
    return k.function


def _needs_position(program: Program) -> bool:
    """Whether a lane asks for its place in the block or the block's in the grid."""
    for i in program.instructions:
        if i.op.name == "SREG" and i.which.name.startswith(("Lane", "BlockX", "BlockY", "BlockZ")):
            return True
        if any(r.index in (LANE, BLOCK) for r in i.reads()):
            return True
    return False
