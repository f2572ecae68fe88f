"""Loops that are run again, piece by piece, instead of being recorded whole.

A loop outside of all others whose body changes no memory can be run twice with the same outcome. Its forward sweep then
records nothing but checkpoints: the parameters of its header, now and then. There is room for `SLOTS` of them; when
they are used up every second one is dropped and they are made half as often. The reverse sweep goes through the pieces
between checkpoints from the last to the first: it runs the piece again with records (`Replay`), and reverses it. So the
tape holds one piece at a time, whatever the number of turns.
"""

from __future__ import annotations

from eshkol.calculus.cfg import Flow, Loop
from eshkol.calculus.emit import RUN_PEAK, SweepWriter, machine
from eshkol.calculus.ir import Block, Function, Instruction, Value

SLOTS = 512
CHANGES = ("array_set", "array_new", "cell_new")
BASE, WORDS, ROOM, COUNT, INTERVAL = range(5)  # words of FastCheckpoints (fast.h)


def is_repeatable(loop: Loop) -> bool:
    """Whether a loop may be run again."""
    seen: set[Function] = set()

    def clean(item: Instruction) -> bool:
        if item.operation in CHANGES:
            return False
        if item.function is None or item.function in seen:
            return True
        seen.add(item.function)
        return all(map(clean, item.function.instructions()))

    return loop.parent is None and all(clean(item) for block in loop.blocks for item in block.body)


def calls(loop: Loop) -> bool:
    return any(item.function is not None for block in loop.blocks for item in block.body)


class Checkpoints:
    """The places and labels of one loop's checkpoints, and the code that makes them."""

    def __init__(self, writer: SweepWriter, loop: Loop, number: int) -> None:
        self.writer, self.loop = writer, loop
        self.params = list(loop.header.params)
        self.words = max(1, len(self.params))
        self.state = writer.slot("[5 x i64]")
        self.values = writer.slot(f"[{self.words} x i64]")
        self.at, self.next = writer.slot("i64"), writer.slot("i64")  # turns of the loop; when to make the next one
        self.turn, self.stop, self.piece = writer.slot("i64"), writer.slot("i64"), writer.slot("i64")
        self.last, self.previous, self.replay, self.step = (f"{n}.{number}" for n in ("last", "prev", "replay", "step"))
        self.prefix = f"p{number}."

    def _field(self, index: int) -> str:
        return self.writer.op(f"getelementptr i64, ptr {self.state}, i64 {index}")

    def _get(self, index: int) -> str:
        return self.writer.op(f"load i64, ptr {self._field(index)}")

    def begin(self) -> None:
        """Before the loop: room on the tape."""
        writer = self.writer
        base = writer.op(f"load ptr, ptr {writer.tape}")
        end = writer.op(f"getelementptr i8, ptr {base}, i64 {8 * self.words * SLOTS}")
        arena = writer.op(f"load ptr, ptr {writer.arena}")
        writer.give_up_if(writer.op(f"icmp ugt ptr {end}, {arena}"), 3)
        writer.do(f"store ptr {end}, ptr {writer.tape}")
        writer.do(f"store ptr {base}, ptr {self._field(BASE)}")
        for index, value in ((WORDS, self.words), (ROOM, SLOTS), (COUNT, 0), (INTERVAL, 1)):
            writer.do(f"store i64 {value}, ptr {self._field(index)}")
        for slot in (self.at, self.next):
            writer.do(f"store i64 0, ptr {slot}")

    def make(self, names: dict[Value, str]) -> None:
        """Where a turn begins: a checkpoint, if it is time for one."""
        writer = self.writer
        at, due = (writer.op(f"load i64, ptr {slot}") for slot in (self.at, self.next))
        make, go = writer.new_block("make"), writer.new_block("go")
        writer.do(f"br i1 {writer.op(f'icmp eq i64 {at}, {due}')}, label %{make}, label %{go}, !prof !0")
        writer.place(make)
        for k, param in enumerate(self.params):
            place = writer.op(f"getelementptr i64, ptr {self.values}, i64 {k}")
            kind, name = machine(param.type), names[param]
            if kind == "i1":
                kind, name = "i64", writer.op(f"zext i1 {name} to i64")
            writer.do(f"store {kind} {name}, ptr {place}")
        helper = writer.module.helper("esk_fast_checkpoint")
        following = writer.op(f"call i64 {helper}(ptr {self.state}, i64 {at}, ptr {self.values})")
        writer.do(f"store i64 {following}, ptr {self.next}")
        writer.do(f"br label %{go}")
        writer.place(go)

    def count(self, slot: str, change: int) -> None:
        now = self.writer.op(f"load i64, ptr {slot}")
        self.writer.do(f"store i64 {self.writer.op(f'add i64 {now}, {change}')}, ptr {slot}")

    def drop(self) -> None:
        """When the loop is reversed: the room is free."""
        base = self.writer.op(f"load ptr, ptr {self._field(BASE)}")
        self.writer.do(f"store ptr {base}, ptr {self.writer.tape}")

    def restore(self) -> list[str]:
        """The labels by which a piece is run again, and the parameters at its beginning."""
        writer = self.writer
        writer.place(self.last)
        writer.do(f"store i64 {writer.op(f'sub i64 {self._get(COUNT)}, 1')}, ptr {self.piece}")
        writer.do(f"store i64 -1, ptr {self.stop}")
        writer.do(f"br label %{self.replay}")
        writer.place(self.previous)
        self.count(self.piece, -1)
        writer.do(f"store i64 {self._get(INTERVAL)}, ptr {self.stop}")
        writer.do(f"br label %{self.replay}")
        writer.place(self.replay)
        writer.do(f"store i64 0, ptr {self.turn}")
        base = writer.op(f"load ptr, ptr {self._field(BASE)}")
        piece = writer.op(f"load i64, ptr {self.piece}")
        offset = writer.op(f"mul i64 {piece}, {8 * self.words}")
        record = writer.op(f"getelementptr i8, ptr {base}, i64 {offset}")
        found = []
        for k, param in enumerate(self.params):
            place = writer.op(f"getelementptr i64, ptr {record}, i64 {k}")
            kind = machine(param.type)
            name = writer.op(f"load {'i64' if kind == 'i1' else kind}, ptr {place}")
            found.append(writer.op(f"trunc i64 {name} to i1") if kind == "i1" else name)
        return found

    def end_of_piece(self) -> None:
        """In a turn that is run again: whether the piece ends here."""
        writer = self.writer
        turn, stop = (writer.op(f"load i64, ptr {slot}") for slot in (self.turn, self.stop))
        end, go = writer.new_block("end"), writer.new_block("go")
        writer.do(f"br i1 {writer.op(f'icmp eq i64 {turn}, {stop}')}, label %{end}, label %{go}, !prof !0")
        writer.place(end)
        place = writer.op(f"getelementptr i8, ptr %run, i64 {RUN_PEAK}")
        before, now = writer.op(f"load ptr, ptr {place}"), writer.op(f"load ptr, ptr {writer.tape}")
        more = writer.op(f"icmp ugt ptr {now}, {before}")
        writer.do(f"store ptr {writer.select(more, now, before, 'ptr')}, ptr {place}")
        writer.do(f"br label %{self.step}")
        writer.place(go)


def outside_values(flow: Flow, loop: Loop) -> list[Value]:
    """What a loop's blocks use and do not compute, but for constants."""
    found: dict[Value, None] = {}

    def use(values: list[Value], block: Block) -> None:
        for value in values:
            maker = flow.maker.get(value)
            if flow.block_of[value] not in loop.blocks and (maker is None or maker.operation != "constant"):
                found[value] = None

    for block in flow.order:
        if block in loop.blocks:
            for item in block.body:
                use(item.operands, block)
            for jump in block.jumps():
                if jump.target in loop.blocks:
                    use(jump.args, block)
            if hasattr(block.end, "condition"):
                use([block.end.condition], block)
    return list(found)
