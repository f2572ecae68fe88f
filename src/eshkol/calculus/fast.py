"""Compiled derivatives of the procedures of a machine: made when the library asks for one that is not there.

Comes in: what `%fast-derivative` (runtime/native/scheme/fast_table.c) asks: a kind, a procedure, points. Goes out: a
program in the machine's table, or a note that there is none; `ESHKOL_DUMP=calculus` prints which, and why. Few inputs
are differentiated forward, in lanes, more in reverse; a Jacobian has a lane for each input.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
import time
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from eshkol.calculus import ir, native
from eshkol.calculus.abstract import Abstract, Closure, Fields, Known, Leaf, NotFast, Primitive
from eshkol.calculus.inputs import MachineWorld, ProgramInput, start
from eshkol.calculus.native import FastCode, Native, Where, compile_forward, compile_gradient
from eshkol.calculus.specialize import specialized
from eshkol.calculus.typed_calculus import PRIMITIVES
from eshkol.calculus.writer import listed
from eshkol.llvm.linking import CodeMemory
from eshkol.runtime.scheme import Machine, Root, Value
from eshkol.runtime.scheme_table import layout
from eshkol.support import flags
from eshkol.support.store import ProgramCache
from eshkol.version import __version__

if TYPE_CHECKING:
    from eshkol.codegen.units import Engine

DERIVATIVE, GRADIENT, JACOBIAN = range(3)  # what the library asks for (lib/eshkol/calculus.esk)
HESSIAN, ALONG = 4, 5
KERNEL = 3  # no derivative: whether the procedure does nothing but compute a number (lib/eshkol/tensors/gpu.esk)
CHECKPOINT = 8  # in a kind: loops keep few states, and run again
STEPS = {"argument": native.ARGUMENT, "captured": native.CAPTURED, "box": native.BOX, "car": native.CAR,
         "cdr": native.CDR, "item": native.ELEMENT, "field": native.FIELD}  # fmt: skip
MOST_FORWARD = 6  # inputs of a gradient that is taken forward
MOST_LANES = native.MAX_LANES  # inputs of a Jacobian that are taken at once; more are taken in pieces of so many
MOST_PASSES = 64  # of such pieces (fast.c)
MOST_KEPT = 200  # programs of a machine


Kept = tuple[Native, FastCode, list[Root]]
Key = tuple[int, ...]  # a procedure's code, the kind, and the code of procedures that it has captured


class FastPrograms:
    """The programs of one machine."""

    def __init__(self, machine: Machine, engine: Engine, cache: ProgramCache) -> None:
        self.machine = machine
        self.engine = engine
        self.cache = cache
        self._code = CodeMemory()
        self._kept: list[Kept] = []  # what the machine's table points to
        self._retired: list[tuple[int, CodeMemory, list[Kept]]] = []  # what threads may still run, by its generation
        self._units: set[int] = set()  # whose code or constants programs were made from
        self._warned = False
        self._forward: set[Key] = set()  # procedures and kinds that have programs for so many inputs
        self._sized: set[Key] = set()  # those that have programs for data of some length
        library = machine.library
        library.esk_fast_add.restype = None
        library.esk_fast_forget.restype = library.esk_fast_oldest.restype = ctypes.c_uint64
        library.esk_fast_add.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
        library.esk_fast_forget.argtypes = library.esk_fast_oldest.argtypes = (ctypes.c_void_p,)

    def close(self) -> None:
        self._code.close()
        for _, code, _ in self._retired:
            code.close()
        self._retired.clear()

    def forget(self, units: Iterable[int]) -> None:
        """Units are about to go away: programs that were made from them, too."""
        if not self._units.isdisjoint(units):
            self._forget_all()

    def _forget_all(self) -> None:
        generation = self.machine.library.esk_fast_forget(self.machine.context)
        self._retired.append((generation, self._code, self._kept))
        self._code, self._kept = CodeMemory(), []
        self._units.clear()
        self._forward.clear()
        self._sized.clear()
        oldest = self.machine.library.esk_fast_oldest(self.machine.context)
        for retired, code, _ in self._retired:
            if retired < oldest:
                code.close()
        self._retired = [one for one in self._retired if one[0] >= oldest]

    def answer(self, args: list[Value]) -> bool | str:
        """Whether there is a program for a kind of derivative now; of `KERNEL`, why there can be none, or False."""
        if args[0].bits == KERNEL:
            return self.why_no_kernel(args[1], args[2:]) or False
        return self.make(args)

    def make(self, args: list[Value]) -> bool:
        """Make a program for a kind of derivative, a procedure and points, and put it into the machine's table."""
        kind, (procedure, *points) = args[0].bits, args[1:]
        if kind == ALONG:  # the directions stand behind the points, with the procedure once more
            del points[len(points) // 2 :]
        descriptor = ctypes.c_uint64.from_address(procedure.bits + layout()["Closure.procedure"]).value
        if len(self._kept) >= MOST_KEPT:  # and they keep alive what they were made from
            self._forget_all()
        begun = time.perf_counter()
        try:
            made = self._made(kind, procedure, points, (descriptor, kind, *self._captured(procedure)))
        except NotFast as reason:
            self._say(procedure, f"no compiled derivative: {reason}")
            self.machine.library.esk_fast_add(self.machine.context, descriptor, kind, None)
            return False
        except Exception as mistake:  # ours: the numeric tower has the derivative all the same, but it is to be known
            if flags.is_on("ESHKOL_CHECK"):
                raise
            self._warn(procedure, mistake)
            self.machine.library.esk_fast_add(self.machine.context, descriptor, kind, None)
            return False
        self._say(procedure, f"compiled in {1e3 * (time.perf_counter() - begun):.0f} ms")
        self.machine.library.esk_fast_add(self.machine.context, descriptor, kind, ctypes.addressof(made))
        return True

    def why_no_kernel(self, procedure: Value, points: list[Value]) -> str | None:
        """Why a procedure of such numbers is more than the computation of one number, as far as the compiler sees.

        None: it has no effect, and depends on nothing that its calls change.
        """
        try:
            _, result, _ = specialized(
                lambda main: MachineWorld(self.machine, self.engine, main, False), PRIMITIVES,
                lambda world: start(world, procedure, points), False,
            )  # fmt: skip
        except NotFast as reason:
            return str(reason)
        if isinstance(result, Known):
            return None if result.is_number or isinstance(result.datum, bool) else "its value is no number"
        is_number = isinstance(result, Leaf) and result.value.type in (ir.F64, ir.I64, ir.I1)
        return None if is_number else "its value is no number"

    def _made(self, kind: int, procedure: Value, points: list[Value], key: Key) -> FastCode:
        program, result, world = self._specialized(procedure, points, key, kind == HESSIAN)
        program.active = [item.varies for item in world.registers]
        if flags.is_on("ESHKOL_CHECK"):
            ir.verify(program)
        if _dumping():
            print(ir.text(program), file=sys.stderr)
        template = _template(result)
        count = sum(world.count(point) for point in points)
        checkpoint, kind = bool(kind & CHECKPOINT), kind % CHECKPOINT
        if kind == GRADIENT and template != "f":
            raise NotFast("its value is no real number")
        if kind == HESSIAN and len(points) > 1 and count > len(points):
            raise NotFast("a Hessian by several vectors or lists")
        if kind == GRADIENT and (count > MOST_FORWARD or checkpoint or key in self._forward):
            compiled = compile_gradient(program, self._code, self.cache, checkpoint)
        elif kind == ALONG:
            compiled = compile_forward(program, 1, self._code, self.cache, directed=True)
        elif template == "f" and count > MOST_LANES:
            compiled = compile_gradient(program, self._code, self.cache)
        else:
            if count > MOST_LANES * MOST_PASSES:
                raise NotFast(f"a Jacobian by {count} inputs, which is taken in one sweep for each result")
            lanes = min(count, MOST_LANES)
            seeds = _seeds(world.registers) if count == lanes else {}
            compiled = compile_forward(program, lanes, self._code, self.cache, seeds=seeds)
            self._forward.add(key)
        made = compiled.describe([_where(item) for item in world.inputs], template, arguments=1 + len(points))
        self._kept.append((compiled, made, world.roots))
        self._units.update(world.units)
        return made

    def _captured(self, procedure: Value) -> list[int]:
        """The code of the procedures that a closure has captured: another program is made for others."""
        count = ctypes.c_uint32.from_address(procedure.bits + 4).value
        values = (Value * count).from_address(procedure.bits + layout()["Closure.captured"])
        closures = [value.bits for value in values if value.tag == self.machine.tags["PROCEDURE"]]
        return [ctypes.c_uint64.from_address(at + layout()["Closure.procedure"]).value for at in closures]

    def _specialized(
        self, procedure: Value, points: list[Value], key: Key, by_gradient: bool
    ) -> tuple[ir.TypedProgram, Abstract, MachineWorld]:
        """The program; the first one is for the lengths that short lists and vectors have now, if that can be."""

        def begin(world: MachineWorld) -> tuple[Closure | Primitive, list[Abstract]]:
            function, args = start(world, procedure, points)
            return (Primitive("gradient"), [function, *args]) if by_gradient else (function, args)

        def made(sized: bool) -> tuple[ir.TypedProgram, Abstract, MachineWorld]:
            return specialized(
                lambda main: MachineWorld(self.machine, self.engine, main, sized),
                PRIMITIVES,
                begin,
                sized,
            )

        if key not in self._sized:
            with contextlib.suppress(NotFast):
                found = made(True)
                self._sized.add(key)
                return found
            self._sized.add(key)
        return made(False)

    def _warn(self, procedure: Value, mistake: Exception) -> None:
        """Of the first mistake of a machine; `ESHKOL_DUMP=calculus` shows them all."""
        what = f"{type(mistake).__name__}: {mistake}".rstrip(": ")
        self._say(procedure, f"no compiled derivative: a mistake, {what}")
        if self._warned:
            return
        self._warned = True
        *_, place = traceback.extract_tb(mistake.__traceback__)
        print(
            f"warning: the derivative of {self.machine.written(procedure)} is right, but slow: a mistake in Eshkol "
            f"{__version__} kept it from being compiled\n  {what} ({Path(place.filename).name}:{place.lineno})\n"
            "  please report it with the program that you ran (ESHKOL_DEBUG=1 shows the traceback)",
            file=sys.stderr,
        )
        if flags.is_on("ESHKOL_DEBUG"):
            traceback.print_exception(mistake)

    def _say(self, procedure: Value, what: str) -> None:
        if _dumping():
            print(f"{self.machine.written(procedure)}: {what}", file=sys.stderr)


def _dumping() -> bool:
    return flags.dumps("calculus")


def _seeds(registers: list[ProgramInput]) -> dict[int, int]:
    """The first lane of each variable, as far as it is known."""
    found, lane = {}, 0
    for k, item in enumerate(registers):
        if item.varies:
            if item.descriptor != "f" and not item.expected[0]:
                return {}  # with other lengths there are several passes
            found[k] = lane
            lane += 1 if item.descriptor == "f" else item.expected[0] - 1
    return found


def _where(item: ProgramInput) -> Where:
    """An input, as C knows it."""
    cell, steps = 0, []
    for word in item.path:
        name, _, number = word.partition(" ")
        if name == "global":
            cell = int(number)
        else:
            steps.append((STEPS[name], int(number or 0)))
    return Where(steps, item.descriptor, item.varies, *item.expected, cell=cell)


def _template(result: Abstract) -> str:
    """How C puts a result together from registers."""
    match result:
        case Leaf(value=value) if value.type == ir.F64:
            return "f"
        case Leaf(value=value) if value.type.element is not None:
            return _described(value.type)
        case Fields(kind="vector", items=items):
            return f"#({''.join(map(_template, items))})"
        case Fields(kind="pair"):
            return f"({''.join(map(_template, listed(result)))})"
    raise NotFast("a result that is no real number, and no list or vector of them")


def _described(kind: ir.Type) -> str:
    if kind == ir.F64:
        return "f"
    letter = {"array": "v", "cell": "l"}.get(kind.kind)
    if letter is None or kind.element is None:
        raise NotFast("a result that is constant data")
    return f"{letter}({_described(kind.element)})"
