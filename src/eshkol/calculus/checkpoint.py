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
from eshkol.calculus.ir import Block, Instruction, TypedFunction, TypedValue

SLOTS = 512
CHANGES = ("array_set", "array_new", "cell_new")
BASE, WORDS, ROOM, COUNT, INTERVAL = range(5)  # words of FastCheckpoints (fast.h)


def is_repeatable(loop: Loop) -> bool:
    """Whether a loop may be run again."""
    seen: set[TypedFunction] = set()

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
        self.words = len(self.params)  # one at least, that counts
        self.state = writer.slot("[5 x i64]")
        self.values = writer.slot(f"[{self.words} x i64]")
        self.at, self.next = writer.slot("i64"), writer.slot("i64")  # turns of the loop; when to make the next one
        self.turn, self.stop, self.piece = writer.slot("i64"), writer.slot("i64"), writer.slot("i64")
        self.last, self.previous, self.replay, self.step = (f"{n}.{number}" for n in ("last", "prev", "replay", "step"))
        self.prefix = f"p{number}."

    def _field(self, index: int) -> str:
        return self.writer.offset(self.state, index, "i64")

    def _get(self, index: int) -> str:
        return self.writer.load("i64", self._field(index))

    def begin(self) -> None:
        """Before the loop: room on the tape."""
        writer = self.writer
        base = writer.load("ptr", writer.tape)
        end = writer.offset(base, 8 * self.words * SLOTS)
        arena = writer.load("ptr", writer.arena)
        writer.give_up_if(writer.op(f"icmp ugt ptr {end}, {arena}"), 3)
        writer.store("ptr", end, writer.tape)
        writer.store("ptr", base, self._field(BASE))
        for index, value in ((WORDS, self.words), (ROOM, SLOTS), (COUNT, 0), (INTERVAL, 1)):
            writer.store("i64", value, self._field(index))
        for slot in (self.at, self.next):
            writer.store("i64", "0", slot)

    def make(self, names: dict[TypedValue, str]) -> None:
        """Where a turn begins: a checkpoint, if it is time for one."""
        writer = self.writer
        at, due = (writer.load("i64", slot) for slot in (self.at, self.next))
        make, go = writer.new_block("make"), writer.new_block("go")
        writer.br_if(writer.op(f"icmp eq i64 {at}, {due}"), make, go, ", !prof !0")
        writer.place(make)
        for k, param in enumerate(self.params):
            place = writer.offset(self.values, k, "i64")
            kind, name = machine(param.type), names[param]
            if kind == "i1":
                kind, name = "i64", writer.op(f"zext i1 {name} to i64")
            writer.store(kind, name, place)
        helper = writer.module.helper("esk_fast_checkpoint")
        following = writer.op(f"call i64 {helper}(ptr {self.state}, i64 {at}, ptr {self.values})")
        writer.store("i64", following, self.next)
        writer.br(go)
        writer.place(go)

    def count(self, slot: str, change: int) -> None:
        now = self.writer.load("i64", slot)
        self.writer.store("i64", self.writer.op(f"add i64 {now}, {change}"), slot)

    def drop(self) -> None:
        """When the loop is reversed: the room is free."""
        base = self.writer.load("ptr", self._field(BASE))
        self.writer.store("ptr", base, self.writer.tape)

    def restore(self) -> list[str]:
        """The labels by which a piece is run again, and the parameters at its beginning."""
        writer = self.writer
        writer.place(self.last)
        writer.store("i64", writer.op(f"sub i64 {self._get(COUNT)}, 1"), self.piece)
        writer.store("i64", "-1", self.stop)
        writer.br(self.replay)
        writer.place(self.previous)
        self.count(self.piece, -1)
        writer.store("i64", self._get(INTERVAL), self.stop)
        writer.br(self.replay)
        writer.place(self.replay)
        writer.store("i64", "0", self.turn)
        base = writer.load("ptr", self._field(BASE))
        piece = writer.load("i64", self.piece)
        offset = writer.op(f"mul i64 {piece}, {8 * self.words}")
        record = writer.offset(base, offset)
        found = []
        for k, param in enumerate(self.params):
            place = writer.offset(record, k, "i64")
            kind = machine(param.type)
            name = writer.load("i64" if kind == "i1" else kind, place)
            found.append(writer.op(f"trunc i64 {name} to i1") if kind == "i1" else name)
        return found

    def end_of_piece(self) -> None:
        """In a turn that is run again: whether the piece ends here."""
        writer = self.writer
        turn, stop = (writer.load("i64", slot) for slot in (self.turn, self.stop))
        end, go = writer.new_block("end"), writer.new_block("go")
        writer.br_if(writer.op(f"icmp eq i64 {turn}, {stop}"), end, go, ", !prof !0")
        writer.place(end)
        place = writer.offset("%run", RUN_PEAK)
        before, now = writer.load("ptr", place), writer.load("ptr", writer.tape)
        more = writer.op(f"icmp ugt ptr {now}, {before}")
        writer.store("ptr", writer.select(more, now, before, "ptr"), place)
        writer.br(self.step)
        writer.place(go)


def outside_values(flow: Flow, loop: Loop) -> list[TypedValue]:
    """What a loop's blocks use and do not compute, but for constants."""
    found: dict[TypedValue, None] = {}

    def use(values: list[TypedValue], block: Block) -> None:
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
