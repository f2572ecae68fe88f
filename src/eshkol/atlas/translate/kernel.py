"""JSON kernels to Atlas programs: `translate_kernel`.

Comes in: `{"version": "1.0", "kernel": {"name": ..., "params": [...], "body": [...]}}`, as text, bytes or a
mapping. Goes out: a `Program` that does what the body says, one lane per element of work as in any
SIMT kernel. The body alone decides; the kernel's name means nothing.

Parameters, each `{"name": ..., "kind": ...}` and
    scalar          "type"                              a variable that starts with the launch's value
    device_ptr      ["element_type": F32]               an array of any length
    device_array    "element_type", ["count"]           an array, of a stated length or any

Statements, each an object with its "kind" (keys in brackets may be left out)
    let             "name", "value", ["type"]           a new variable, until the end of its block
    assign          "target", "value"                   target: var or index expression, or a variable's name
    if              "cond", "then", ["else"]            then and else are lists of statements
    for             "var", "start", "stop", "body", ["step": 1], ["type"]
                    Python's range: bounds are computed once, step is a constant other than 0
    while           "cond", "body"
    return                                              ends the lane
    call            "function": "barrier" or "grid_barrier"
    parallel_map_unary   "operation", "dst", "src", "count"      dst[k] = operation(src[k])
    parallel_map_binary  "operation", "dst", "a", "b", "count"   dst[k] = operation(a[k], b[k])

Expressions
    var             "name"
    literal         "value", ["type"]                   a finite number, or "inf", "-inf", "nan" for floats
    binary_op       "op", "left", "right"               add sub mul div floor_div mod lt le gt ge eq ne and or
    unary_op        "op", "operand"                     neg abs not
    index           "array", "index"
    call            "function", ["args"]                global_id (U64); lane_x … grid_size_z (U32); any scalar
                                                        instruction by its name: sqrt, fma, min, clamp, xor, ...
    if_expr         "cond", "then", "else"              only the chosen side is computed
    cast            "type", "value"                     as the instruction CVT
    parallel_reduce "operation", "src", "count"         sum product min max of count elements

"kind" is the spelling to use; where an object has none, a "type" that names a kind is taken for it. An array
operand of the parallel forms is an array's name, or an index expression for the array from that element on;
counts are constants. A parallel map over fixed places is done once per launch, by all lanes together. `div` of
integers truncates; `floor_div` floors and `mod` has the divisor's sign, of integers and floats. Any object may
carry a "comment". Errors are `IsaError`s that begin with the path, such as `body[3].then[0].value.left`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.isa import COUNT_LIMIT, Opcode
from eshkol.atlas.operands import (
    Address,
    BinaryMapOperation,
    BufferOffset,
    Choice,
    Condition,
    Label,
    MapOperation,
    Register,
)
from eshkol.atlas.program import Param, ParamKind, Program, is_name
from eshkol.atlas.table import ROWS
from eshkol.atlas.translate.kernel_expressions import (
    FUNCTIONS,
    ExpressionTranslator,
    arguments,
    cast_hint,
    choices_by_name,
)
from eshkol.atlas.translate.kernel_source import KernelNode, describe, read_kernel
from eshkol.atlas.translate.kernel_values import KernelScope, KernelValue, KernelVariable
from eshkol.atlas.types import Type

VERSION = "1.0"
BARRIERS = {"barrier": ROWS["BarSync"], "grid_barrier": ROWS["GridSync"]}
UNARY_MAPS = choices_by_name(MapOperation)
BINARY_MAPS = choices_by_name(BinaryMapOperation)


def translate_kernel(source: str | bytes | Mapping[str, Any]) -> Program:
    """The Atlas program of a JSON kernel.

    >>> double = {"kind": "binary_op", "op": "mul", "left": {"kind": "literal", "value": 2},
    ...           "right": {"kind": "var", "name": "n"}}
    >>> store = {"kind": "assign", "value": double,
    ...          "target": {"kind": "index", "array": "out", "index": {"kind": "call", "function": "global_id"}}}
    >>> program = translate_kernel({"version": "1.0", "kernel": {"name": "fill", "body": [store], "params": [
    ...     {"name": "n", "kind": "scalar", "type": "I32"},
    ...     {"name": "out", "kind": "device_ptr", "element_type": "I32"}]}})
    >>> [str(i.op.name) for i in program.instructions]
    ['LDG', 'MOV_IMM', 'MUL', 'STG']
    """
    top = read_kernel(source)
    top.check_keys(("version", "kernel"))
    version = top.get("version")
    if version.value != VERSION:
        raise version.expected(f"'{VERSION}'")
    # Paths are told from inside the kernel, where everything but the version stands.
    kernel = KernelNode(top.get("kernel").members(), "", 0)
    kernel.check_keys(("name", "params", "body"))
    name = kernel.get("name")
    if not is_name(name.text()):
        raise name.expected("a name of letters, digits and _, other than r1 or p1")
    translator = KernelTranslator(ProgramBuilder(name.text()), kernel)
    try:
        for param in kernel.get("params").items():
            translator.parameter(param)
        translator.block(kernel.get("body"))
    except RecursionError:  # called from deep inside a recursion of the caller's own
        raise kernel.error("nested too deeply") from None
    return translator.b.build()


class KernelTranslator(ExpressionTranslator):
    """Emits parameters and statements."""

    # --- parameters ------------------------------------------------------------------------------

    def parameter(self, node: KernelNode) -> None:
        kind, node = node.with_kind(PARAMETERS, "a kind of parameter")
        form = PARAMETERS[kind]
        node.check_keys(("name", "kind", *form.required), form.optional)
        name, given_type, count = node.get("name"), node.find(form.type_key), node.find("count")
        ty = Type.F32 if given_type is None else given_type.type()
        length = None if count is None else count.integer(0, COUNT_LIMIT)
        names = self.scopes[0].names
        if name.text() in names:
            raise name.error(f"two parameters are named {describe(name.value)}")
        if not is_name(name.text()):
            raise name.expected("a name of letters, digits and _, other than r1 or p1")
        param = self.b.declare(Param(name.text(), form.kind, ty, length))
        if form.kind is ParamKind.SCALAR:
            self.here = node
            value = self.fresh(ty)
            self.b.ldg(ty, value.register, param.address)
            names[param.name] = KernelVariable(value.register, ty)
        else:
            names[param.name] = param

    # --- blocks ----------------------------------------------------------------------------------

    def block(self, node: KernelNode) -> None:
        """A list of statements, whose variables end with it."""
        with self.scope():
            for statement in node.items():
                self.statement(statement)

    @contextmanager
    def scope(self) -> Iterator[dict[str, KernelVariable | Param]]:
        """The names of a block, whose registers are free again afterwards."""
        scope = KernelScope()
        self.scopes.append(scope)
        yield scope.names
        self.scopes.pop()
        self.free(*scope.registers)

    def statement(self, node: KernelNode) -> None:
        kind, node = node.with_kind(STATEMENTS, "a statement")
        form = STATEMENTS[kind]
        node.check_keys(("kind", *form.required), form.optional)
        outer, self.here = self.here, node
        form.emit(self, node)
        self.here = outer

    def keep(self, value: KernelValue) -> KernelVariable:
        """A variable that holds a value until the end of the block; a temporary's register becomes its own."""
        if not value.temporary:
            copied = self.fresh(value.ty)
            self.b.mov(copied.register, value.register)
            value = copied
        self.scopes[-1].registers.append(value)
        return KernelVariable(value.register, value.ty)

    # --- variables and memory --------------------------------------------------------------------

    def _let(self, node: KernelNode) -> None:
        name, declared = node.get("name").identifier(), node.find("type")
        want = None if declared is None else declared.type()
        self.scopes[-1].names[name] = self.keep(self.expression(node.get("value"), want))

    def _assign(self, node: KernelNode) -> None:
        target = node.get("target")
        if not isinstance(target.value, str):
            kind, target = target.with_kind(("var", "index"), "a target to assign to")
            target.check_keys(("kind", "name") if kind == "var" else ("kind", "array", "index"))
            if kind == "index":
                self._assign_element(target, node.get("value"))
                return
            target = target.get("name")
        variable = self.lookup(target)
        if isinstance(variable, Param):
            raise target.error(f"{describe(target.value)} is an array", "assign to an element of it, with index")
        if not variable.assignable:
            raise target.error(f"the loop variable {describe(target.value)} cannot be assigned", "use a while loop")
        value = self.expression(node.get("value"), variable.ty)
        self.b.mov(variable.register, value.register)
        self.free(value)

    def _assign_element(self, target: KernelNode, value_node: KernelNode) -> None:
        value = self.expression(value_node, self.array(target.get("array")).ty)
        _, address, index = self.element(target)
        self.b.stg(value.ty, address, value.register)
        self.free(value, index)

    def _parallel_map(self, node: KernelNode, table: Mapping[str, Choice], keys: Sequence[str], op: Opcode) -> None:
        """An array instruction over the operands under these keys, the destination first."""
        operation = node.get("operation").one_of(table, "an operation")
        count = self.count(node.get("count"))
        operands = [(key, *self.stretch(node.get(key), count)) for key in keys]
        ty = operands[0][1].ty
        for key, array, _, _ in operands:
            if array.ty is not ty:
                message = f"the arrays must have one type: {keys[0]} is {ty}, {key} is {array.ty}"
                raise node.error(message, "convert one in a for loop, element by element")
        assert ty is not None
        if ty not in ROWS[operation.value].types:
            raise node.error(f"{operation.name.lower()} is not defined on {ty}")
        for key, _, address, _ in operands[1:]:
            if _overlap_askew(operands[0][2], address, count * ty.size_bytes):
                message = f"this overlaps {keys[0]} without beginning where it begins"
                raise node.get(key).error(message, "write the result elsewhere first")
        self.b.emit(op(ty, operation, *(address for _, _, address, _ in operands), count))
        self.free(*(index for *_, index in operands))

    def _map_unary(self, node: KernelNode) -> None:
        self._parallel_map(node, UNARY_MAPS, ("dst", "src"), ROWS["ParallelMap"])

    def _map_binary(self, node: KernelNode) -> None:
        self._parallel_map(node, BINARY_MAPS, ("dst", "a", "b"), ROWS["ParallelMapBinary"])

    # --- control flow ----------------------------------------------------------------------------

    def _return(self, node: KernelNode) -> None:
        self.b.exit()

    def _call(self, node: KernelNode) -> None:
        function = node.get("function")
        if function.text() in FUNCTIONS:
            raise function.error(f"nothing is done with the value of {function.value}", "bind it with let")
        opcode = function.one_of(BARRIERS, "a function")
        if arguments(node):
            raise node.error(f"{function.value} takes no arguments")
        self.b.emit(opcode())

    def _if(self, node: KernelNode) -> None:
        otherwise, end = node.find("else"), self.label("endif")
        other = end if otherwise is None else self.label("else")
        self.branch(node.get("cond"), other, when=False)
        self.block(node.get("then"))
        if otherwise is not None:
            self.b.bra(end)
            self.b.place(other)
            self.block(otherwise)
        self.b.place(end)

    def _while(self, node: KernelNode) -> None:
        again, end = self.label("while"), self.label("endwhile")
        self.b.place(again)
        self.branch(node.get("cond"), end, when=False)
        self.block(node.get("body"))
        self.b.bra(again)
        self.b.place(end)

    def _for(self, node: KernelNode) -> None:
        name, step, ty = node.get("var").identifier(), self._loop_step(node), self._loop_type(node)
        fixed_stop = self.constant_integer(node.get("stop"))
        again, end = self.label("for"), self.label("endfor")
        with self.scope() as names:
            counter = self.keep(self.expression(node.get("start"), ty))
            stop = self.keep(self.expression(node.get("stop"), ty))
            size = self.keep(self.constant(ty, abs(step)))
            names[name] = replace(counter, assignable=False)
            more, past = (Condition.LT, Condition.GE) if step > 0 else (Condition.GT, Condition.LE)
            self._jump(past, counter.register, stop.register, end)
            self.b.place(again)
            self.block(node.get("body"))
            advance = ROWS["ADD" if step > 0 else "SUB"](counter.register, counter.register, size.register)
            if _may_wrap(ty, step, fixed_stop):
                self._leave_on_last(counter, stop, step, end)
                self.b.emit(advance).bra(again)
            else:
                self.b.emit(advance)
                self._jump(more, counter.register, stop.register, again)
            self.b.place(end)

    def _loop_step(self, node: KernelNode) -> int:
        given = node.find("step")
        if given is None:
            return 1
        step = self.constant_integer(given)
        if step is None:
            raise given.error("the step of a for loop must be an integer constant", "use a while loop")
        if step == 0:
            raise given.error("a step of 0 never ends")
        return step

    def _loop_type(self, node: KernelNode) -> Type:
        """The type of the loop variable: that of its bounds, or of its declaration."""
        given = node.find("type")
        declared = None if given is None else given.type()
        bounds = [(key, node.get(key)) for key in ("start", "stop", "step") if key in node.members()]
        ty = self.common_type(node, bounds, declared)
        if declared not in (None, ty):
            raise node.error(f"the bounds are {ty}, but the variable is to be {declared}", cast_hint(ty))
        if not ty.is_integer:
            raise node.error(f"a for loop counts with integers, not {ty}", "use a while loop, or a cast in the body")
        if abs(self._loop_step(node)) > ty.max_value:
            raise node.get("step").error(f"the step does not fit {ty}")
        return ty

    def _jump(self, condition: Condition, left: Register, right: Register, target: Label) -> None:
        predicate = self.b.pred()
        self.b.setcc(condition, predicate, left, right)
        self.b.bra(target, predicate)
        self.free(predicate)

    def _leave_on_last(self, counter: KernelVariable, stop: KernelVariable, step: int, end: Label) -> None:
        """Leave the loop unless more than a step remains to the stop.

        That distance is positive here, and fits the unsigned type of the same width.
        """
        signed, unsigned = counter.ty, Type[f"U{counter.ty.bits}"]
        distance, needed = self.fresh(signed), self.constant(unsigned, abs(step))
        high, low = (stop, counter) if step > 0 else (counter, stop)
        self.b.sub(distance.register, high.register, low.register)
        if signed is not unsigned:
            self.b.cvt(signed, unsigned, distance.register, distance.register)
        self._jump(Condition.LE, distance.register, needed.register, end)
        self.free(distance, needed)


def _overlap_askew(left: Address, right: Address, size: int) -> bool:
    """Whether two stretches of `size` bytes surely overlap, but are not the same."""
    if not (isinstance(left, BufferOffset) and isinstance(right, BufferOffset)):
        return False
    return left.handle == right.handle and 0 < abs(left.offset - right.offset) < size


def _may_wrap(ty: Type, step: int, fixed_stop: int | None) -> bool:
    """Whether a counter could step past the stop and past the end of its type, and so never end."""
    if abs(step) == 1:
        return False
    if fixed_stop is None or not ty.min_value <= fixed_stop <= ty.max_value:
        return True
    furthest = fixed_stop - 1 + step if step > 0 else fixed_stop + 1 + step
    return not ty.min_value <= furthest <= ty.max_value


@dataclass(frozen=True, slots=True)
class ParameterForm:
    """One kind of parameter: what it declares, the key of its type, and its keys."""

    kind: ParamKind
    type_key: str
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StatementForm:
    """One kind of statement: how it is emitted, and its keys."""

    emit: Callable[[KernelTranslator, KernelNode], None]
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


PARAMETERS = {
    "scalar": ParameterForm(ParamKind.SCALAR, "type", required=("type",)),
    "device_ptr": ParameterForm(ParamKind.BUFFER, "element_type", optional=("element_type",)),
    "device_array": ParameterForm(ParamKind.BUFFER, "element_type", ("element_type",), ("count",)),
}
_K = KernelTranslator
STATEMENTS = {
    "let": StatementForm(_K._let, ("name", "value"), ("type",)),
    "assign": StatementForm(_K._assign, ("target", "value")),
    "if": StatementForm(_K._if, ("cond", "then"), ("else",)),
    "for": StatementForm(_K._for, ("var", "start", "stop", "body"), ("step", "type")),
    "while": StatementForm(_K._while, ("cond", "body")),
    "return": StatementForm(_K._return),
    "call": StatementForm(_K._call, ("function",), ("args",)),
    "parallel_map_unary": StatementForm(_K._map_unary, ("operation", "dst", "src", "count")),
    "parallel_map_binary": StatementForm(_K._map_binary, ("operation", "dst", "a", "b", "count")),
}
