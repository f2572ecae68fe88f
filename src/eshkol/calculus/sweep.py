"""The forward direction of a function: its blocks as LLVM, with places where other kinds of sweeps put in their own.

Comes in: a function and its flow. Goes out: LLVM blocks. By itself this is the program as it is; `reverse` adds records
and slots, `forward` adds tangents.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial

from eshkol.calculus.cfg import Flow
from eshkol.calculus.emit import FAILED, FULL, MISMATCH, STOPPED, SweepWriter, machine, returned
from eshkol.calculus.ir import Block, Branch, Fail, Instruction, Jump, Return, TypedFunction, TypedValue
from eshkol.llvm.text import Phi


class Sweep(ABC):
    """Writes the blocks of a function in the order of execution."""

    def __init__(self, writer: SweepWriter, flow: Flow, names: dict[TypedFunction, str]) -> None:
        self.writer, self.flow, self.functions = writer, flow, names
        self.names: dict[TypedValue, str] = {}
        self.labels: dict[Block, str] = {}
        self.ends: dict[Block, str] = {}  # the last LLVM block of each block: incoming edges of phis
        self._phis: list[tuple[int, Phi, Callable[[], Sequence[tuple[str, str]]]]] = []
        self.prefix = "b"

    # what others override

    def defined(self, value: TypedValue) -> None:
        """A value has just been computed."""

    def extra_phis(self, block: Block) -> None:
        """Behind the phis of a block's parameters."""

    def after(self, item: Instruction) -> None:
        """An instruction has been written."""

    def ending(self, block: Block) -> None:
        """Before a block's last instruction."""

    @abstractmethod
    def leave(self, values: list[TypedValue]) -> None:
        """Return from the function."""

    def is_back(self, block: Block, target: Block) -> bool:
        return self.flow.position[target] <= self.flow.position[block]

    # the work

    def blocks(self, order: Sequence[Block]) -> None:
        writer = self.writer
        for number, block in enumerate(order):
            self.labels[block] = f"{self.prefix}{number}"
        for block in order:
            writer.place(self.labels[block])
            self.begin(block)
            for item in block.body:
                self.instruction(item)
            self.ending(block)
            self.end(block)
        self.patch()

    def patch(self) -> None:
        for line, phi, incoming in self._phis:
            phi.incoming = list(incoming())
            self.writer.lines[line] = phi.text()
        self._phis.clear()

    def phi(self, kind: str, incoming: Callable[[], Sequence[tuple[str, str]]]) -> str:
        phi = Phi(self.writer.name(), kind)
        self._phis.append((len(self.writer.lines), phi, incoming))
        self.writer.lines.append("")  # until it is known what comes in
        return phi.name

    def begin(self, block: Block) -> None:
        if block is not self.flow.order[0]:
            for k, param in enumerate(block.params):
                self.names[param] = self.phi(machine(param.type), partial(self.incoming, block, k))
        self.extra_phis(block)
        for param in block.params:
            self.defined(param)

    def incoming(self, block: Block, index: int) -> list[tuple[str, str]]:
        return [(self.names[jump.args[index]], self.ends[before]) for before, jump in self.flow.into[block]]

    def instruction(self, item: Instruction) -> None:
        writer = self.writer
        if item.operation == "constant":
            self.names[item.result] = writer.constant(item)
        elif item.operation == "call":
            self.call(item)
        else:
            found = writer.instruction(item, [self.names[v] for v in item.operands], True)
            if item.results:
                self.names[item.result] = found
        self.after(item)
        for result in item.results:
            self.defined(result)

    def call(self, item: Instruction) -> None:
        assert item.function is not None
        args = [f"{machine(v.type)} {self.names[v]}" for v in item.operands]
        found = self.call_function(self.functions[item.function], args, [machine(r.type) for r in item.results])
        self.names.update(zip(item.results, found, strict=True))

    def call_function(self, name: str, args: Sequence[str], results: Sequence[str]) -> list[str]:
        """Call an inner function, and give up where it did."""
        writer = self.writer
        kind = returned(results)
        writer.store_memory()
        all_ = writer.op(f"call {kind} @{name}({', '.join(['ptr %ctx', 'ptr %run', *args])})")
        status = writer.op(f"extractvalue {kind} {all_}, 0")
        for value in (MISMATCH, FAILED, FULL, STOPPED):
            writer.give_up_if(writer.op(f"icmp eq i64 {status}, {value}"), value)
        writer.load_memory()
        return [writer.op(f"extractvalue {kind} {all_}, {k + 1}") for k in range(len(results))]

    def end(self, block: Block) -> None:
        writer = self.writer
        match block.end:
            case Jump(target=target):
                if self.is_back(block, target):
                    writer.poll()
                self.ends[block] = writer.here
                writer.br(self.labels[target])
            case Branch(condition=condition, yes=yes, no=no):
                self.ends[block] = writer.here
                writer.br_if(self.names[condition], self.labels[yes.target], self.labels[no.target])
            case Return(values=values):
                self.leave(values)
            case Fail():
                writer.gives_up.add(2)
                writer.br("up.2")


class Plain(Sweep):
    """A function as it is."""

    def __init__(self, writer: SweepWriter, flow: Flow, names: dict[TypedFunction, str], is_main: bool) -> None:
        super().__init__(writer, flow, names)
        self.is_main = is_main

    def leave(self, values: list[TypedValue]) -> None:
        writer = self.writer
        writer.store_memory()
        kind = returned([machine(v.type) for v in values])
        made = f"{{ {', '.join(['i64 0', *(f'{machine(v.type)} poison' for v in values)])} }}"
        for k, value in enumerate(values):
            made = writer.op(f"insertvalue {kind} {made}, {machine(value.type)} {self.names[value]}, {k + 1}")
        writer.do(f"ret {kind} {made}")

    def write(self, name: str) -> None:
        """The whole function."""
        writer, flow = self.writer, self.flow
        params = flow.order[0].params
        writer.begin_memory()
        if self.is_main:
            head, result = f"i64 @{name}(ptr %ctx, ptr %run, ptr %in, ptr %out)", "i64"
            self.load_inputs(params)
        else:
            writer.poll_stack()
            listed = self.parameters(params)
            result = returned(self.result_types())
            head = f"internal {result} @{name}({', '.join(['ptr %ctx', 'ptr %run', *listed])})"
        writer.br("b0")
        self.blocks(flow.order)
        writer.finish(head, result)

    def parameters(self, params: list[TypedValue]) -> list[str]:
        """The parameters of an inner function."""
        self.names.update((p, f"%p{k}") for k, p in enumerate(params))
        return [f"{machine(p.type)} %p{k}" for k, p in enumerate(params)]

    def result_types(self) -> list[str]:
        return [machine(kind) for kind in self.flow.function.results]

    def load_inputs(self, params: list[TypedValue]) -> None:
        writer = self.writer
        for k, param in enumerate(params):
            place = writer.offset("%in", k, "i64")
            if machine(param.type) == "i1":
                self.names[param] = writer.op(f"trunc i64 {writer.load('i64', place)} to i1")
            else:
                self.names[param] = writer.load(machine(param.type), place)
