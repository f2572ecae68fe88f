"""LLVM text of typed programs: what every kind of sweep writes alike.

Comes in: instructions of `ir` and names of their operands. Goes out: lines of LLVM. Values have the same bits as those
of the runtime's own arithmetic: no operation is contracted or reordered, and functions are those of the C library that
the runtime calls, under names that LLVM does not know ("m.sin"), so that it does not replace them.

An emitted function gives a status first: 0, or why it gave up (the numbers of fast.h). Memory that a run makes lies in
one place, which the tape fills from below and arrays and cells from above; both ends are kept in registers and in the
record of the run when another function is called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from eshkol.calculus.abstract import NotFast
from eshkol.calculus.factors import Tree
from eshkol.calculus.ir import F64, I1, I64, Instruction, Type
from eshkol.llvm.text import FunctionText, double, double_value

MISMATCH, FAILED, FULL, STOPPED = 1, 2, 3, 4
LARGEST_ARRAY = 1 << 36
LIBRARY = {  # functions of the C library
    ("exp", 1): "exp", ("log", 1): "log", ("sin", 1): "sin", ("cos", 1): "cos", ("tan", 1): "tan",
    ("asin", 1): "asin", ("acos", 1): "acos", ("atan", 1): "atan", ("atan", 2): "atan2", ("expt", 2): "pow",
    ("sinh", 1): "sinh", ("cosh", 1): "cosh", ("tanh", 1): "tanh", ("asinh", 1): "asinh", ("acosh", 1): "acosh",
    ("atanh", 1): "atanh", ("expm1", 1): "expm1", ("log1p", 1): "log1p", ("hypot", 2): "hypot",
}  # fmt: skip
ROUNDING = {"floor": "floor", "ceiling": "ceil", "round": "roundeven", "truncate": "trunc"}
BINARY = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
SAME = frozenset({"inexact", "exact->inexact", "exact", "inexact->exact"})
ORDERED = {"eq": "oeq", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
SIGNED = {"eq": "eq", "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"}
RELATIONS = {"=": "oeq", "<": "olt", "<=": "ole", ">": "ogt", ">=": "oge"}
HELPERS = {
    "esk_fast_fill": "void @esk_fast_fill(ptr, i64, i64) nounwind memory(argmem: readwrite)",
    "esk_fast_spread": "void @esk_fast_spread(ptr, i64, ptr, i64) nounwind memory(argmem: readwrite)",
    "esk_fast_checkpoint": "i64 @esk_fast_checkpoint(ptr, i64, ptr) nounwind",
    "esk_fast_sum": "double @esk_fast_sum(ptr, i64, double) nounwind memory(argmem: read)",
}
LIMIT_OFFSET = 0  # of stack_limit in the context
TAGS = {"i64": 1, "f64": 2, "pairs": 3, "vector": 10}  # of values in pairs (value.h)
NO_TAG = 0  # that of the empty list
RUN_TAPE, RUN_ARENA, RUN_PEAK, RUN_LOWEST = 0, 8, 16, 24  # offsets in the record of a run


def machine(kind: Type) -> str:
    """The LLVM type of a value."""
    if kind == F64:
        return "double"
    return "i64" if kind == I64 else "i1" if kind == I1 else "ptr"


class SweepModule:
    """The text of a module, and the functions outside that it calls."""

    def __init__(self) -> None:
        self.functions: list[str] = []
        self.outside: dict[str, str] = {}
        self.releases = False  # whether memory of the run is used again; a reverse sweep needs all of it

    def library(self, name: str, arity: int) -> str:
        parameters = ", ".join(["double"] * arity)
        declared = f'double @"m.{name}"({parameters}) nounwind willreturn memory(none)'
        self.outside[f"m.{name}"] = declared
        return f'@"m.{name}"'

    def helper(self, name: str) -> str:
        self.outside[name] = HELPERS[name]
        return f"@{name}"

    def text(self) -> str:
        intrinsics = [
            *(f"declare double @llvm.{n}.f64(double)" for n in ("sqrt", "fabs", *ROUNDING.values())),
            *(f"declare {{i64, i1}} @llvm.{n}.with.overflow.i64(i64, i64)" for n in ("sadd", "ssub", "smul")),
            "declare ptr @llvm.frameaddress.p0(i32)",
        ]
        weights = '!0 = !{!"branch_weights", i32 1, i32 4000}'
        return "\n".join([*intrinsics, *(f"declare {d}" for d in self.outside.values()), *self.functions, weights])


class SweepWriter(FunctionText):
    """Writes one function."""

    joint: ClassVar[str] = "."
    first_number: ClassVar[int] = 1
    entry: ClassVar[str] = "begin"

    def __init__(self, module: SweepModule, lanes: int) -> None:
        super().__init__()
        self.module = module
        self.lanes = lanes  # how many derivatives lie beside each number in memory
        self.gives_up: set[int] = set()

    # ---- giving up --------------------------------------------------------------------------------------------------

    def give_up_if(self, condition: str, status: int = FAILED) -> None:
        self.gives_up.add(status)
        fine = self.new_block("ok")
        self.br_if(condition, f"up.{status}", fine, ", !prof !0")
        self.place(fine)

    def poll(self) -> None:
        """In a loop: whether someone interrupts."""
        slot = self.offset("%ctx", LIMIT_OFFSET)
        limit = self.op(f"load volatile i64, ptr {slot}")
        self.give_up_if(self.op(f"icmp eq i64 {limit}, -1"), STOPPED)

    def poll_stack(self) -> None:
        """Where a function begins that may be recursive: whether there is stack left."""
        frame = self.op("call ptr @llvm.frameaddress.p0(i32 0)")
        slot = self.offset("%ctx", LIMIT_OFFSET)
        limit = self.op(f"load volatile i64, ptr {slot}")
        self.give_up_if(self.op(f"icmp eq i64 {limit}, -1"), STOPPED)
        address = self.op(f"ptrtoint ptr {frame} to i64")
        self.give_up_if(self.op(f"icmp ult i64 {address}, {limit}"), FAILED)

    # ---- memory of the run ------------------------------------------------------------------------------------------

    def begin_memory(self) -> None:
        self.tape, self.arena = self.slot("ptr"), self.slot("ptr")
        self.load_memory()

    def load_memory(self) -> None:
        for slot, offset in ((self.tape, RUN_TAPE), (self.arena, RUN_ARENA)):
            place = self.offset("%run", offset)
            self.store("ptr", self.load("ptr", place), slot)

    def store_memory(self) -> None:
        for slot, offset in ((self.tape, RUN_TAPE), (self.arena, RUN_ARENA)):
            place = self.offset("%run", offset)
            self.store("ptr", self.load("ptr", slot), place)

    def allocate(self, size: str) -> str:
        """Memory for an array or a cell."""
        old = self.load("ptr", self.arena)
        back = str(-int(size)) if size.isdigit() else self.op(f"sub i64 0, {size}")
        new = self.offset(old, back)
        tape = self.load("ptr", self.tape)
        self.give_up_if(self.op(f"icmp ult ptr {new}, {tape}"), FULL)
        self.store("ptr", new, self.arena)
        return new

    def push(self, values: Sequence[tuple[str, str]]) -> None:
        """A record on the tape: values with their machine types."""
        if not values:
            return
        old = self.load("ptr", self.tape)
        new = self.offset(old, 8 * len(values))
        arena = self.load("ptr", self.arena)
        self.give_up_if(self.op(f"icmp ugt ptr {new}, {arena}"), FULL)
        for k, (kind, value) in enumerate(values):
            place = self.offset(old, 8 * k) if k else old
            if kind == "i1":
                kind, value = "i64", self.op(f"zext i1 {value} to i64")
            self.store(kind, value, place)
        self.store("ptr", new, self.tape)

    def pop(self, kinds: Sequence[str]) -> list[str]:
        """Take the topmost record from the tape."""
        if not kinds:
            return []
        end = self.load("ptr", self.tape)
        base = self.offset(end, -8 * len(kinds))
        self.store("ptr", base, self.tape)
        found = []
        for k, kind in enumerate(kinds):
            place = self.offset(base, 8 * k) if k else base
            if kind == "i1":
                found.append(self.op(f"trunc i64 {self.load('i64', place)} to i1"))
            else:
                found.append(self.load(kind, place))
        return found

    # ---- arithmetic -------------------------------------------------------------------------------------------------

    def math(self, name: str, args: Sequence[str], checked: bool) -> str:
        """A numeric procedure on doubles. With `checked`, gives up where the runtime's result is no real number."""
        key = (name, len(args))
        x = args[0]
        y = args[1] if len(args) > 1 else ""
        if name in SAME or key == ("+", 1) or key == ("*", 1):
            return x
        if name in BINARY and len(args) == 2:
            return self._folded(name, x, y) or self.op(f"{BINARY[name]} double {x}, {y}")
        match key:
            case ("-", 1):
                return self.op(f"fneg double {x}")
            case ("/", 1):
                return self.op(f"fdiv double {double(1.0)}, {x}")
            case ("square", 1):
                return self.op(f"fmul double {x}, {x}")
            case ("1+", 1):
                return self.op(f"fadd double {x}, {double(1.0)}")
            case ("-1+", 1):
                return self.op(f"fsub double {x}, {double(1.0)}")
            case ("abs" | "magnitude", 1):
                return self.op(f"call double @llvm.fabs.f64(double {x})")
            case ("sqrt", 1):
                if checked:
                    self.give_up_if(self.op(f"fcmp olt double {x}, {double(0.0)}"))
                return self.op(f"call double @llvm.sqrt.f64(double {x})")
            case ("max" | "min", 2):
                better = self.op(f"fcmp {'ogt' if name == 'max' else 'olt'} double {y}, {x}")
                nan = self.op(f"fcmp uno double {y}, {y}")
                return self.select(self.op(f"or i1 {better}, {nan}"), y, x)
            case ("sign", 1):
                zero = self.select(self.op(f"fcmp oeq double {x}, {double(0.0)}"), double(0.0), x)  # or a NaN
                below = self.select(self.op(f"fcmp olt double {x}, {double(0.0)}"), double(-1.0), zero)
                return self.select(self.op(f"fcmp ogt double {x}, {double(0.0)}"), double(1.0), below)
            case ("log", 2):
                return self._logarithm(x, y, checked)
        if name in ROUNDING and len(args) == 1:
            return self.op(f"call double @llvm.{ROUNDING[name]}.f64(double {x})")
        if key not in LIBRARY:
            raise NotFast(f"{name} of {len(args)} doubles is not compiled")
        if checked:
            self._check_domain(name, x, y)
        if name == "expt" and y in (double(1.0), double(0.0)):
            return x if y == double(1.0) else double(1.0)
        return self.op(
            f"call double {self.module.library(LIBRARY[key], len(args))}({', '.join('double ' + a for a in args)})"
        )

    def _check_domain(self, name: str, x: str, y: str) -> None:
        least = {"log": 0.0, "log1p": -1.0, "acosh": 1.0}.get(name)
        if least is not None:
            self.give_up_if(self.op(f"fcmp olt double {x}, {double(least)}"))
        elif name in ("asin", "acos", "atanh"):
            size = self.op(f"call double @llvm.fabs.f64(double {x})")
            self.give_up_if(self.op(f"fcmp ogt double {size}, {double(1.0)}"))
        elif name == "expt":
            if y.startswith("0x") and double_value(y).is_integer():
                return
            below = self.op(f"fcmp olt double {x}, {double(0.0)}")
            whole = self.op(f"call double @llvm.trunc.f64(double {y})")
            broken = self.op(f"fcmp one double {whole}, {y}")
            self.give_up_if(self.op(f"and i1 {below}, {broken}"))

    def _logarithm(self, x: str, base: str, checked: bool) -> str:
        """As the runtime: two bases have functions of their own."""
        if checked:
            for value in (x, base):
                self.give_up_if(self.op(f"fcmp ule double {value}, {double(0.0)}"))
        own = {double(2.0): "log2", double(10.0): "log10"}
        if base in own:
            return self.op(f"call double {self.module.library(own[base], 1)}(double {x})")
        if checked and not base.startswith("0x"):
            for literal in own:
                self.give_up_if(self.op(f"fcmp oeq double {base}, {literal}"))
        log = self.module.library("log", 1)
        top, bottom = (self.op(f"call double {log}(double {v})") for v in (x, base))
        return self.op(f"fdiv double {top}, {bottom}")

    def _folded(self, name: str, x: str, y: str) -> str | None:
        if x.startswith("0x") and y.startswith("0x") and name != "/":
            a, b = double_value(x), double_value(y)
            return double(a + b if name == "+" else a - b if name == "-" else a * b)
        return None

    def select(self, condition: str, yes: str, no: str, kind: str = "double") -> str:
        if yes == no or condition == "true":
            return yes
        if condition == "false":
            return no
        return self.op(f"select i1 {condition}, {kind} {yes}, {kind} {no}")

    def tree(self, tree: Tree, names: Callable[[str], str]) -> str:
        """A factor of a derivative rule."""
        if isinstance(tree, float):
            return double(tree)
        if isinstance(tree, str):
            return names(tree)
        name = tree.operator
        args = [self.tree(part, names) for part in tree.operands]
        if name == "if":
            condition, yes, no = args
            return self.select(condition, yes, no)
        if name in RELATIONS:
            if all(a.startswith("0x") for a in args):
                a, b = map(double_value, args)
                return str({"=": a == b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[name]).lower()
            return self.op(f"fcmp {RELATIONS[name]} double {args[0]}, {args[1]}")
        if name in ("and", "or"):
            return self.op(f"{name} i1 {args[0]}, {args[1]}")
        if name == "not":
            return self.op(f"xor i1 {args[0]}, true")
        return self.math(name, args, False)

    # ---- instructions -----------------------------------------------------------------------------------------------

    def constant(self, item: Instruction) -> str:
        kind = item.result.type
        if kind == F64:
            assert item.literal is not None
            return double(float(item.literal))
        if kind == I1:
            return "true" if item.literal else "false"
        return str(item.literal) if kind == I64 else "null"

    def element(self, array: str, index: str) -> str:
        start = self.offset(array, 8)
        return self.offset(start, index, "i64")

    def shadow(self, array: str, index: str) -> str:
        """Where the derivatives of an element of an array of numbers lie."""
        length = self.load("i64", array)
        at = index if self.lanes == 1 else self.op(f"mul i64 {index}, {self.lanes}")
        return self.element(array, self.op(f"add i64 {length}, {at}"))

    def in_range(self, index: str, length: str) -> None:
        self.give_up_if(self.op(f"icmp uge i64 {index}, {length}"))

    def instruction(self, item: Instruction, args: Sequence[str], checked: bool) -> str:
        """The result of an instruction other than constants and calls; without `checked`, one that was run before."""
        if item.operation == "memory_mark":
            return self.op(f"ptrtoint ptr {self.load('ptr', self.arena)} to i64")
        a = args[0]
        b = args[1] if len(args) > 1 else ""
        match item.operation:
            case "memory_release":
                if self.module.releases:
                    place = self.offset("%run", RUN_LOWEST)
                    before, now = self.load("ptr", place), self.load("ptr", self.arena)
                    less = self.op(f"icmp ult ptr {now}, {before}")
                    self.store("ptr", self.select(less, now, before, "ptr"), place)
                    self.store("ptr", self.op(f"inttoptr i64 {a} to ptr"), self.arena)
                return ""
            case "math":
                return self.math(item.name, args, checked)
            case "compare":
                return self.op(f"fcmp {ORDERED[item.name]} double {a}, {b}")
            case "icompare":
                return self.op(f"icmp {SIGNED[item.name]} i64 {a}, {b}")
            case "not":
                return self.op(f"xor i1 {a}, true")
            case "iadd" | "isub" | "imul":
                if not checked:
                    return self.op(f"{item.operation[1:]} i64 {a}, {b}")
                both = self.op(f"call {{i64, i1}} @llvm.s{item.operation[1:]}.with.overflow.i64(i64 {a}, i64 {b})")
                self.give_up_if(self.op(f"extractvalue {{i64, i1}} {both}, 1"))
                return self.op(f"extractvalue {{i64, i1}} {both}, 0")
            case "quotient" | "remainder" | "modulo":
                return self._divide(item.operation, a, b)
            case "itof":
                return self.op(f"sitofp i64 {a} to double")
            case "ftoi":
                size = self.op(f"call double @llvm.fabs.f64(double {a})")
                self.give_up_if(self.op(f"fcmp ugt double {size}, {double(2.0**53)}"))
                whole = self.op(f"fptosi double {a} to i64")
                back = self.op(f"sitofp i64 {whole} to double")
                self.give_up_if(self.op(f"fcmp one double {back}, {a}"))
                return whole
            case "is_null":
                return self.op(f"icmp eq ptr {a}, null")
        return self._memory(item, args, checked)

    def _divide(self, operation: str, a: str, b: str) -> str:
        self.give_up_if(self.op(f"icmp sle i64 {b}, 0"))
        if operation == "quotient":
            return self.op(f"sdiv i64 {a}, {b}")
        rest = self.op(f"srem i64 {a}, {b}")
        if operation == "remainder":
            return rest
        up = self.op(f"add i64 {rest}, {b}")
        return self.select(self.op(f"icmp slt i64 {rest}, 0"), up, rest, "i64")

    def _memory(self, item: Instruction, args: Sequence[str], checked: bool) -> str:
        a = args[0]
        b = args[1] if len(args) > 1 else ""
        kind = machine(item.results[0].type) if item.results else machine(item.operands[2].type)
        match item.operation:
            case "vector_length":
                return self.load("i64", self.offset(a, 8))
            case "vector_get":
                if checked:
                    length = self.load("i64", self.offset(a, 8))
                    self.in_range(b, length)
                start = self.offset(a, 24)
                place = self.offset(start, b, "{i64, i64}")
                return self.load(kind, place)
            case "pairs_car" | "pairs_cdr":
                half = 1 if item.operation == "pairs_car" else 2
                if checked:
                    self._check_half(item, a, half)
                return self.load(kind, self.offset(a, 8 * half))
            case "array_length":
                return self.load("i64", a)
            case "array_get":
                if checked:
                    self.in_range(b, self.load("i64", a))
                return self.load(kind, self.element(a, b))
            case "array_set":
                self.in_range(b, self.load("i64", a))
                self.store(kind, args[2], self.element(a, b))
                return ""
            case "array_new":
                return self._new_array(item, a, b)
            case "cell_new":
                of = machine(item.operands[0].type)
                varies = item.operands[0].type == F64
                made = self.allocate(str(16 + (8 * self.lanes if varies else 0)))
                self.store(of, a, made)
                self.store("ptr", b, self.offset(made, 8))
                return made
            case "cell_value" | "cell_next":
                if checked:
                    self.give_up_if(self.op(f"icmp eq ptr {a}, null"))
                if item.operation == "cell_value":
                    return self.load(kind, a)
                return self.load("ptr", self.offset(a, 8))
        raise NotFast(f"no code for {item.operation}")

    def _check_half(self, item: Instruction, pair: str, half: int) -> None:
        """Give up where a pair is none, or has something else in it; a list of another length needs another program."""
        if item.operands[0].type.length is None:
            self.give_up_if(self.op(f"icmp eq ptr {pair}, null"))
        kind = item.result.type
        tag = self.load("i8", self.offset(pair, half))
        if kind.kind == "pairs" and kind.length is None:
            some = self.op(f"icmp ne i8 {tag}, {TAGS['pairs']}")
            self.give_up_if(self.op(f"and i1 {some}, {self.op(f'icmp ne i8 {tag}, {NO_TAG}')}"))
        else:
            wanted = NO_TAG if kind.length == 0 else TAGS[kind.kind]
            self.give_up_if(self.op(f"icmp ne i8 {tag}, {wanted}"), FAILED if kind.length is None else MISMATCH)

    def _new_array(self, item: Instruction, length: str, fill: str) -> str:
        kind = item.operands[1].type
        self.give_up_if(self.op(f"icmp slt i64 {length}, 0"))
        self.give_up_if(self.op(f"icmp ugt i64 {length}, {LARGEST_ARRAY}"), FULL)
        per = 8 * (1 + (self.lanes if kind == F64 else 0))
        made = self.allocate(self.op(f"add i64 {self.op(f'mul i64 {length}, {per}')}, 8"))
        self.store("i64", length, made)
        first = self.offset(made, 8)
        match machine(kind):
            case "double":
                bits = self.op(f"bitcast double {fill} to i64")
            case "ptr":
                bits = self.op(f"ptrtoint ptr {fill} to i64")
            case _:
                bits = fill
        filler = self.module.helper("esk_fast_fill")
        self.do(f"call void {filler}(ptr {first}, i64 {length}, i64 {bits})")
        return made

    def clear_shadows(self, array: str, length: str) -> None:
        filler = self.module.helper("esk_fast_fill")
        count = length if self.lanes == 1 else self.op(f"mul i64 {length}, {self.lanes}")
        self.do(f"call void {filler}(ptr {self.element(array, length)}, i64 {count}, i64 0)")

    def finish(self, head: str, result: str) -> None:
        """Put the function into the module."""
        ends = [f"up.{status}:\n  ret {_undefined(result, status)}" for status in sorted(self.gives_up)]
        self.module.functions.append(self.defined(f'{head} nounwind "frame-pointer"="all"', ends))


def _undefined(result: str, status: int) -> str:
    """A returned status without results."""
    if result == "i64":
        return f"i64 {status}"
    fields = result.strip("{}").split(", ")[1:]
    return f"{result} {{ {', '.join([f'i64 {status}', *(f'{f} poison' for f in fields)])} }}"


def returned(types: Sequence[str]) -> str:
    """The LLVM type of what an inner function returns: its status and these."""
    return "{" + ", ".join(["i64", *types]) + "}"
