"""Lanes in loops: a program as an LLVM module with one function `kernel(record, first block, last block)`.

Without barriers and shared memory the lanes of all blocks are one loop, which LLVM vectorizes, or else the loops in it.
Accesses whose range follows from the lane's number are checked before the loop: lanes for which all of them are in
range run in a version of the lane without those checks, the rest in a checked one (see `ranges.py`; where everything
follows from declared sizes there is none). So are loads at fixed places at the start, which are done before the loop,
and which buffers overlap, where loops are parallel only if they do not (`loops.py`). A guard "end if r255 ≥ n" at the
start of the program becomes the end of the loop.

Otherwise each block runs its lanes from barrier to barrier. Its state is a header of 16 bytes (where it
stands), its shared memory, and the saved registers of its lanes. Where lanes wait for the whole launch
(GridSync, PoolAlloc, PoolFree) the host keeps the states of all blocks and calls the kernel again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from eshkol.atlas.expand import is_collective
from eshkol.atlas.isa import Control, Instruction, Kind, element_type
from eshkol.atlas.operands import BLOCK, GLOBAL, LANE, BufferOffset, Condition, Register, Shared, address_base
from eshkol.atlas.program import LANE_LIMIT, ParamKind, Program
from eshkol.atlas.types import Type
from eshkol.atlas.validate import Analysis, extent, memory_operands, validate
from eshkol.backends.llvm import layout as words
from eshkol.backends.llvm import macro
from eshkol.backends.llvm.amounts import computed
from eshkol.backends.llvm.compile import Target
from eshkol.backends.llvm.emitter import Emitter, llvm_type
from eshkol.backends.llvm.lane_memory import neighbour_table
from eshkol.backends.llvm.lanes import LaneWriter
from eshkol.backends.llvm.layout import Layout
from eshkol.backends.llvm.loops import LANES, Loops, Metadata, parallel_loops
from eshkol.backends.llvm.macro import INTERNAL, Macro
from eshkol.backends.llvm.ranges import Bound, Ranges, ranges
from eshkol.backends.llvm.rare import functions as rare_functions
from eshkol.backends.llvm.rare import rare_stretches
from eshkol.backends.llvm.scalars import DIVISION, DIVISION_FUNCTION
from eshkol.backends.llvm.uniform import MANY_STEPS, early_loads, uniform_steps
from eshkol.backends.llvm.wide import functions as products

HEADER_BYTES = 16
MANY_BITS = 256  # of an integer, from which on a lane is computed by itself
ENDED = -1
GRID_WIDE = frozenset({"GridSync", "PoolAlloc", "PoolFree"})


@dataclass(frozen=True)
class Module:
    """LLVM text with what the host must know to call it."""

    text: str
    layout: Layout
    grid_wide: bool  # whether lanes may wait for the whole launch
    serial: bool  # whether blocks must run one after another
    steps: Sequence[int]  # about how many instructions a lane has before it, at the start and behind each barrier
    one_loop: bool  # whether lanes are a loop, without barriers and shared memory


@dataclass(frozen=True)
class Guard:
    """A branch at the start by which lanes from `bound` on end: a scalar parameter or a constant."""

    branch: int
    bound: str | int


def translate(program: Program, target: Target, macros: Mapping[int, Macro] | None = None) -> Module:
    """The module of a program that contains only instructions with a lowering, or with a macro (by their place)."""
    analysis, layout, macros = validate(program), Layout.of(program), macros or {}
    in_lanes = [found for index, found in macros.items() if not is_collective(program.instructions[index])]
    together = {index for index in macros if is_collective(program.instructions[index])}
    together |= {index for index, i in enumerate(program.instructions) if i.op.name in GRID_WIDE}
    shifts = target.shifts_bf16
    by_blocks = bool(together) or any(_needs_its_block(i) for i in program.instructions)
    functions = list(dict.fromkeys(text for found in in_lanes for text in found.text(INTERNAL)))
    if by_blocks:
        only = LaneWriter(analysis, layout, macros=macros, shifts_bf16=shifts)
        functions.append(only.write("lane"))
        kernel = _block_by_block(layout, together, SCALAR_LOOP if _is_costly(program) else "")
        declared = {**only.e.declared, **RUNTIME}
    else:
        guard = _guard(program, analysis)
        never = frozenset() if guard is None else frozenset({guard.branch})  # the loop ends before it would be taken
        early = early_loads(program, never)
        bound = guard.bound if guard is not None and isinstance(guard.bound, int) else None
        known = ranges(analysis, bound)
        rare = rare_stretches(analysis, target.vector_bits)
        loops = parallel_loops(analysis, known, rare)
        metadata = Metadata(loops, known, target.interleave)
        fast = LaneWriter(analysis, layout, known, never, macros, frozenset(early), metadata, rare, shifts_bf16=shifts)
        stretches, declared = rare_functions(analysis, rare.values(), target)
        functions += [fast.write("lane_fast"), *stretches]
        declared |= fast.e.declared
        promises = Promises(known, loops, early, bound)
        if not promises.hold_always:
            checked = LaneWriter(analysis, layout, None, never, macros, shifts_bf16=shifts)
            functions.append(checked.write("lane", seldom=True))
            declared |= checked.e.declared
        over_lanes = SCALAR_LOOP if _is_costly(program, early) else metadata.loops[LANES]
        kernel = _free(program, layout, promises, guard, over_lanes)
    body = "\n\n".join(functions)
    parts = [
        neighbour_table() if "@neighbours" in body else "",
        FAULT_FUNCTION,
        DIVISION_FUNCTION if DIVISION in body else "",
        *products(body),
        body,
        kernel(8 * layout.words, target.attributes),
        *dict.fromkeys([*declared.values(), *(text for found in in_lanes for text in found.declared)]),
        METADATA,
        "" if by_blocks else metadata.text,
        macro.METADATA,
    ]
    serial = any(i.op.name == "PhaseWrite" for i in program.instructions)
    steps = tuple(_steps(program, macros, after) for after in (-1, *layout.barriers))
    text = "\n\n".join(filter(None, parts)) + "\n"
    return Module(text, layout, bool(together), serial, steps, one_loop=not by_blocks)


FAULT_FUNCTION = f"""\
define internal void @fault(ptr %args, i64 %gid, i64 %site) cold noinline nounwind {{
  %high = shl i64 %gid, {words.SITE_BITS}
  %code = or i64 %high, %site
  %old = atomicrmw umin ptr %args, i64 %code monotonic
  ret void
}}"""
RUNTIME = {
    "malloc": "declare ptr @malloc(i64)",
    "free": "declare void @free(ptr)",
    "llvm.umin.i32": "declare i32 @llvm.umin.i32(i32, i32)",
}
METADATA = """\
!0 = !{}
!1 = !{!"branch_weights", i32 1, i32 1000000}
!4 = distinct !{!4, !5, !6}
!5 = !{!"llvm.loop.vectorize.enable", i1 false}
!6 = !{!"llvm.loop.unroll.disable"}
!7 = distinct !{!7, !6}"""
SCALAR_LOOP = ", !llvm.loop !4"


def _is_costly(program: Program, early: Collection[int] = ()) -> bool:
    """Whether LLVM would take too long over several lanes at once: its vectorizer, or what comes after it."""
    if any(i.operands[k].bits > MANY_BITS for i in program.instructions for k in i.op.places[Kind.TYPE]):
        return True  # copies of code for so wide integers make LLVM slow, not the program fast
    return uniform_steps(program, frozenset(early)) > MANY_STEPS


def _needs_its_block(i: Instruction) -> bool:
    """Whether lanes wait here for the others of their block, or touch the memory that they share."""
    return i.op.control is Control.WAIT or any(isinstance(address_base(a), Shared) for _, a in memory_operands(i))


def _guard(program: Program, analysis: Analysis) -> Guard | None:
    """The guard that a program starts with, if it has one: constants, scalars, one comparison, one branch."""
    if program.start != 0:
        return None
    values: dict[Register, str | int] = {}
    compared: Instruction | None = None
    for index, i in enumerate(program.instructions):
        if index in program.labels_at and index > 0:
            return None
        if i.op.name == "MOV_IMM":
            if i.value.ty is Type.U64:
                values[i.dst] = i.value.value
        elif i.op.name == "LDG" and _is_scalar(program, i):
            if i.ty is Type.U64:
                values[i.dst] = i.src.handle
        elif i.op.name == "SETcc" and compared is None:
            compared = i
        elif i.op.control is Control.BRANCH and compared is not None and i.pred == compared.pred:
            ends = _is_end(program, analysis.flow.targets[index])
            right = compared.cond is Condition.GE and compared.lhs.index == GLOBAL and compared.rhs in values
            return Guard(index, values[compared.rhs]) if ends and right else None
        else:
            return None
    return None


def _steps(program: Program, macros: Mapping[int, Macro], after: int) -> int:
    """About how many instructions a lane has before it behind an instruction, if it does not go back.

    Loops whose rounds are not known are taken to run 16 times; of a loop around the instruction all rounds are counted.
    """
    total, counted, rounds, starts = 1, 0, [1], [0]
    for index, i in enumerate(program.instructions):
        if i.op.control is Control.LOOP:
            rounds.append(rounds[-1] * (i.iterations if isinstance(i.iterations, int) else 16))
            starts.append(total)
        elif i.op.control is Control.ENDLOOP:
            rounds.pop()
            starts.pop()
        if index in macros:
            elements = [extent(i, f)[1] // element_type(i, f).size_bytes for f, _ in memory_operands(i)]
            total += rounds[-1] * max(elements, default=1)
        else:
            total += rounds[-1]
        if index == after:
            counted = total if len(starts) == 1 else starts[1]
    return min(total - counted + 1, 1 << 40)


def _is_scalar(program: Program, i: Instruction) -> bool:
    param = program.param.get(getattr(i.src, "handle", ""))
    return isinstance(i.src, BufferOffset) and param is not None and param.kind is ParamKind.SCALAR


def _is_end(program: Program, index: int) -> bool:
    return index == len(program) or program.instructions[index].op.control is Control.EXIT


def _needs_position(program: Program) -> bool:
    """Whether a lane asks for its place in the block or the block's in the grid."""
    for i in program.instructions:
        if i.op.name == "SREG" and i.which.name.startswith(("Lane", "BlockX", "BlockY", "BlockZ")):
            return True
        if any(r.index in (LANE, BLOCK) for r in i.reads()):
            return True
    return False


class _KernelWriter(Emitter):
    """The kernel function's own code: words of the record, counted loops."""

    def word(self, number: int, llvm: str = "i64") -> str:
        place = self.op(f"getelementptr i64, ptr %args, i64 {number}")
        return self.op(f"load {llvm}, ptr {place}, !invariant.load !0")

    def block_size(self) -> str:
        x, y, z = (self.word(words.BLOCK + axis) for axis in range(3))
        return self.op(f"mul i64 {self.op(f'mul i64 {x}, {y}')}, {z}")

    def least(self, a: str, b: str) -> str:
        less = self.op(f"icmp ult i64 {a}, {b}")
        return self.op(f"select i1 {less}, i64 {a}, i64 {b}")

    def loop(self, start: str, stop: str, body: Callable[[str], object], metadata: str = "") -> None:
        """for (i = start; i < stop; i++) body(i)"""
        before, head, inside, after = (self.new_block(hint) for hint in ("pre", "head", "body", "end"))
        self.do(f"br label %{before}")
        self.place(before)
        self.do(f"br label %{head}")
        self.place(head)
        index, following, latch = self.name("i"), self.name("n"), self.new_block("latch")
        self.do(f"{index} = phi i64 [ {start}, %{before} ], [ {following}, %{latch} ]")
        self.do(f"br i1 {self.op(f'icmp ult i64 {index}, {stop}')}, label %{inside}, label %{after}")
        self.place(inside)
        body(index)
        self.do(f"br label %{latch}")
        self.place(latch)
        self.do(f"{following} = add nuw nsw i64 {index}, 1")
        self.do(f"br label %{head}{metadata}")
        self.place(after)

    def lane(self, function: str, gid: str, block: str, lane: str, given: str = "") -> str:
        return self.op(
            f"call i32 @{function}(ptr %args, ptr null, ptr null, i64 {gid}, i64 {block}, i64 {lane}, i32 0{given})"
        )

    def function(self, record_bytes: int, attributes: str) -> str:
        # A record that is known to be there lets LLVM fetch its words before loops, needed or not.
        record = f"ptr dereferenceable({record_bytes}) %args"
        head = f"define void @kernel({record}, i64 %begin, i64 %end) nounwind {attributes} {{"
        return "\n".join([head, "entry:", *self.entry, *self.lines, "  ret void", "}"])


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


def _safe_lanes(k: _KernelWriter, layout: Layout, promises: Promises, last: str) -> str:
    """The first lane, up to `last`, for which the promises do not hold."""
    safe = last
    if promises.lanes_below is not None:
        safe = k.least(safe, str(promises.lanes_below))
    for limit in promises.known.limits:
        end = limit.end
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


def _computed_limit(k: _KernelWriter, layout: Layout, end: Bound, most: str, safe: str) -> str:
    """The first lane, up to `safe`, for which a bound that depends on scalar parameters is above a number."""

    def value(name: str) -> str:
        pointer = k.word(layout.word(name), "ptr")
        return k.op(f"zext i32 {k.op(f'load i32, ptr {pointer}, !invariant.load !0')} to i128")

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


def _free(
    program: Program, layout: Layout, promises: Promises, guard: Guard | None, metadata: str
) -> Callable[[int, str], str]:
    """The kernel of a program without barriers."""
    k = _KernelWriter()
    size = k.block_size()
    first, last = k.op(f"mul i64 %begin, {size}"), k.op(f"mul i64 %end, {size}")
    if guard is not None:
        if isinstance(guard.bound, int):
            bound = str(guard.bound)
        else:
            pointer = k.word(layout.word(guard.bound), "ptr")
            bound = k.op(f"load i64, ptr {pointer}, !invariant.load !0")
        last = k.least(last, bound)
    safe = _safe_lanes(k, layout, promises, last)
    given = ""
    for index, place in sorted(promises.early.items()):
        ty, word = program.instructions[index].ty, layout.word(place.handle)
        pointer = k.op(f"getelementptr i8, ptr {k.word(word, 'ptr')}, i64 {place.offset}")
        if index not in promises.known.proven:
            fits = k.op(f"icmp uge i64 {k.word(word + 1)}, {place.offset + ty.size_bytes}")
            pointer = k.op(f"select i1 {fits}, ptr {pointer}, ptr %args")  # anything, if there is nothing to load
            safe = k.op(f"select i1 {fits}, i64 {safe}, i64 0")
        given += f", {llvm_type(ty)} {k.op(f'load {llvm_type(ty)}, ptr {pointer}, align {ty.alignment}')}"
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


def _block_by_block(layout: Layout, together: set[int], metadata: str) -> Callable[[int, str], str]:
    """The kernel of a program with shared memory or barriers: each block runs from one barrier to the next.

    The barriers in `together` are for the whole launch. The metadata is that of loops over lanes.
    """
    k, grid_wide = _KernelWriter(), bool(together)
    size, shared_bytes = k.block_size(), k.word(words.SHARED_BYTES)
    padded = k.op(f"and i64 {k.op(f'add i64 {shared_bytes}, 63')}, -64")
    contexts = k.op(f"mul i64 {size}, {layout.context_bytes}")
    stride = k.op(f"add i64 {k.op(f'add i64 {padded}, 64')}, {contexts}")
    if grid_wide:
        states = k.word(words.STATES, "ptr")
    else:
        states, missing, there = k.op(f"call ptr @malloc(i64 {stride})"), k.new_block("missing"), k.new_block("there")
        k.do(f"br i1 {k.op(f'icmp eq ptr {states}, null')}, label %{missing}, label %{there}")
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
        state = k.op(f"getelementptr i8, ptr {states}, i64 {place}")
        shared = k.op(f"getelementptr i8, ptr {state}, i64 64")
        context = k.op(f"getelementptr i8, ptr {shared}, i64 {padded}")
        if not grid_wide:
            k.do(f"store i32 0, ptr {state}")
        rounds, lanes, done = (k.new_block(hint) for hint in ("rounds", "lanes", "done"))
        k.do(f"br label %{rounds}")
        k.place(rounds)
        phase = k.op(f"load i32, ptr {state}")
        k.do(f"br i1 {k.op(f'icmp eq i32 {phase}, {ENDED}')}, label %{done}, label %{lanes}")
        k.place(lanes)
        result = k.alloca("i32", "result")
        k.do(f"store i32 0, ptr {result}")

        def run_lane(lane: str) -> None:
            gid = k.op(f"add i64 {k.op(f'mul i64 {block}, {size}')}, {lane}")
            own = k.op(f"getelementptr i8, ptr {context}, i64 {k.op(f'mul i64 {lane}, {layout.context_bytes}')}")
            came = k.op(
                f"call i32 @lane(ptr %args, ptr {own}, ptr {shared}, i64 {gid}, i64 {block}, i64 {lane}, i32 {phase})"
            )
            if not divergence:
                return  # without barriers every lane has ended
            before = k.op(f"load i32, ptr {result}")
            first = k.op(f"icmp eq i64 {lane}, 0")
            same = k.op(f"or i1 {first}, {k.op(f'icmp eq i32 {came}, {before}')}")
            apart, told, joined = (k.new_block(hint) for hint in ("apart", "told", "joined"))
            k.do(f"br i1 {same}, label %{joined}, label %{apart}")
            k.place(apart)
            # Where this lane or one before it has failed, that is what is wrong. Otherwise one of these two waits: the
            # earlier barrier is named, and who stands there. An ended lane returns 0, which less 1 is the greatest.
            known = k.op(f"lshr i64 {k.op('load atomic i64, ptr %args monotonic, align 8')}, {words.SITE_BITS}")
            k.do(f"br i1 {k.op(f'icmp ule i64 {known}, {gid}')}, label %{joined}, label %{told}")
            k.place(told)
            here, there = (k.op(f"sub i32 {barrier}, 1") for barrier in (came, before))
            earlier = k.op(f"call i32 @llvm.umin.i32(i32 {here}, i32 {there})")
            number = k.op(f"zext i32 {earlier} to i64")
            back = k.op(f"zext i1 {k.op(f'icmp ult i32 {there}, {here}')} to i64")
            site = k.op(f"add i64 {number}, {divergence[0]}")
            k.do(f"call void @fault(ptr %args, i64 {k.op(f'sub i64 {gid}, {back}')}, i64 {site})")
            k.do(f"br label %{joined}")
            k.place(joined)
            k.do(f"store i32 {came}, ptr {result}")

        k.loop("0", size, run_lane, metadata)
        last = k.op(f"load i32, ptr {result}")
        failed = k.op(f"icmp ne i64 {k.op('load atomic i64, ptr %args monotonic, align 8')}, -1")
        over = k.op(f"or i1 {failed}, {k.op(f'icmp eq i32 {last}, 0')}")
        following = k.op(f"select i1 {over}, i32 {ENDED}, i32 {last}")
        k.do(f"store i32 {following}, ptr {state}")
        waits = "false"
        for number in grid_numbers:
            waits = k.op(f"or i1 {waits}, {k.op(f'icmp eq i32 {following}, {number}')}")
        k.do(f"br i1 {waits}, label %{done}, label %{rounds}")
        k.place(done)

    k.loop("%begin", "%end", run_block)
    if not grid_wide:
        k.do(f"call void @free(ptr {states})")
    return k.function
