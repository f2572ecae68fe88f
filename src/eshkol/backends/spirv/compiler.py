"""Statements and expressions of C as functions of SPIR-V, in one pass over the tokens.

Comes in: the text of a kernel with what it calls, each function before those that call it. Goes out: a module whose
kernel is loaded with the lanes of a block, and the words that these share, as constants 0 and 1. A launch gives it the
address of its arguments, eight bytes for each. A text that is not of this C is a BackendError.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from eshkol.backends.spirv import module as spirv
from eshkol.backends.spirv.library import EXTENDED, TOP_BIT, WRITTEN
from eshkol.backends.spirv.memory import Memory
from eshkol.backends.spirv.module import Capability, Module, Op, Space
from eshkol.backends.spirv.syntax import END, Cursor
from eshkol.backends.spirv.types import (
    BOOL,
    DOUBLE,
    FLOAT,
    INT,
    NAMED,
    UINT,
    ULONG,
    VOID,
    CType,
    Kind,
    Place,
    Value,
    literal,
    wide_type,
)
from eshkol.backends.spirv.unit import Function, Options, Unit, shared_bits

COMPILER = 2  # its version: what it makes of a text is kept
BLOCK_SIZE, ENTRY = 0, "main"
SLOT = 8  # bytes of an argument of a launch
_QUALIFIERS = frozenset({"const", "volatile", "packed", "struct", "__global", "__local", "__constant", "__private"})
_PRECEDENCE = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, ">": 7, "<=": 7, ">=": 7, "<<": 8, ">>": 8,
    "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip
_ASSIGNED = {"=": "", **{f"{sign}=": sign for sign in ("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>")}}


def compile_kernel(text: str, options: Options) -> bytes:
    """The module of a kernel."""
    unit = Unit(Module(), shared_bits(text))
    cursor = Cursor(text)
    while cursor.next != END:
        _declared(unit, cursor)
    if not unit.kernel:
        raise cursor.error("it has no kernel")
    m = unit.module
    size = m.fresh()
    vector = m.once(Op.TypeVector, m.integer(32), 3)
    one = m.word(1)
    m.put(m.globals, Op.SpecConstantComposite, vector, size, m.specialized(BLOCK_SIZE, 1), one, one)
    m.decorate(size, spirv.BUILT_IN, spirv.WORKGROUP_SIZE)
    for kept, capability, mode in (
        (options.keeps_special, Capability.SignedZeroInfNanPreserve, spirv.SIGNED_ZERO_INF_NAN_PRESERVE),
        (options.keeps_denormals, Capability.DenormPreserve, spirv.DENORM_PRESERVE),
        (options.rounds_to_even, Capability.RoundingModeRTE, spirv.ROUNDING_MODE_RTE),
    ):
        for bits in sorted(kept & ({32, 64} if Capability.Float64 in m.capabilities else {32})):
            m.need(capability)
            m.put(m.modes, Op.ExecutionMode, unit.kernel, mode, bits)
    return m.finished(unit.kernel, ENTRY)


def _declared(unit: Unit, cursor: Cursor) -> None:
    """A type, table or function of a text."""
    if cursor.accept("typedef"):
        while cursor.take() != "}":
            pass
        name = cursor.take()
        unit.structures[name] = wide_type(int(name[1:]))
        cursor.expect(";")
        return
    if cursor.next == "__constant":
        _table(unit, cursor)
        return
    _Compiler(unit, cursor).function()


def _table(unit: Unit, cursor: Cursor) -> None:
    """Numbers of 64 bits that do not change."""
    m = unit.module
    cursor.take()
    ty = NAMED[cursor.take()]
    name = cursor.take()
    for token in ("[", "]", "=", "{"):
        cursor.expect(token)
    values = []
    while not cursor.accept("}"):
        sign = -1 if cursor.accept("-") else 1
        values.append(m.bits(m.integer(64), 64, sign * int(cursor.take())))
        cursor.accept(",")
    cursor.expect(";")
    kind = m.array(m.integer(64), len(values))
    constant = m.typed(Op.ConstantComposite, kind, *values)
    array = CType(Kind.ARRAY, of=ty, count=len(values))
    unit.tables[name] = Place(array, m.variable(Space.Private, kind, constant), space=Space.Private)


class _Compiler(Memory):
    """Compiles a function."""

    def __init__(self, unit: Unit, cursor: Cursor) -> None:
        super().__init__(unit.module, unit.shared_bits)
        self.unit, self.c = unit, cursor
        self.scopes: list[dict[str, Value | Place]] = [{}]
        self.locals: list[int] = []
        self.breaks: list[int] = []
        self.continues: list[int] = []
        self.result = VOID

    # --- functions ----------------------------------------------------------------------------------

    def function(self) -> None:
        """The function that begins here."""
        m, is_kernel = self.m, self.c.accept("__kernel")
        self.result = self.type()
        name = self.c.take()
        self.c.expect("(")
        given: list[tuple[CType, str]] = []
        while not self.c.accept(")"):
            given.append((self.type(), self.c.take()))
            self.c.accept(",")
        kinds = [] if is_kernel else [self.type_id(ty) for ty, _ in given]
        result = self.type_id(self.result)
        number = m.fresh()
        head: list[int] = []
        m.put(head, Op.Function, result, number, 0, m.once(Op.TypeFunction, result, *kinds))
        start = m.fresh()
        self.block = start
        if is_kernel:
            self._arguments(given)
            self.unit.kernel = number
        else:
            for (ty, given_name), kind in zip(given, kinds, strict=True):
                found = m.fresh()
                m.put(head, Op.FunctionParameter, kind, found)
                self._bind(given_name, ty, Value(ty, found))
            self.unit.functions[name] = Function(number, self.result, tuple(ty for ty, _ in given))
        m.put(head, Op.Label, start)
        self.statement()
        self.leave(Op.Return if self.result is VOID else Op.Unreachable)
        end: list[int] = []
        m.put(end, Op.FunctionEnd)
        for part in (head, self.locals, self.out, end):
            m.functions.extend(part)

    def _arguments(self, given: list[tuple[CType, str]]) -> None:
        """What a launch gives, read from the address that it gives."""
        m, long = self.m, self.m.integer(64)
        structure = spirv.members(m, [long], "arguments")
        m.decorate(structure, spirv.BLOCK)
        m.put(m.decorations, Op.MemberDecorate, structure, 0, spirv.OFFSET, 0)
        pushed = m.variable(Space.PushConstant, structure)
        place = self.made(Op.AccessChain, m.pointer(Space.PushConstant, long), pushed, m.word(0))
        address = Value(ULONG, self.made(Op.Load, long, place))
        behind = CType(Kind.POINTER, 64, of=ULONG)
        for number, (ty, name) in enumerate(given):
            if ty.shared:  # it begins at 0
                self.scopes[-1][name] = Value(ty, self.id(Value(UINT, constant=0)))
                continue
            at = self.id(self.binary("+", address, Value(ULONG, constant=SLOT * number)))
            held = ULONG if ty.kind is Kind.POINTER else ty
            self.scopes[-1][name] = Value(ty, self.load(Place(held, at, behind)).id)

    def _bind(self, name: str, ty: CType, value: Value | None) -> None:
        """A variable of a name."""
        place = Place(ty, self.variable(ty, self.locals))
        self.scopes[-1][name] = place
        if value is not None:
            self.store(place, value)

    # --- types --------------------------------------------------------------------------------------

    def _begins_type(self, token: str) -> bool:
        return token in NAMED or token in _QUALIFIERS or token in self.unit.structures

    def type(self) -> CType:
        """The type that is written here."""
        said = set()
        while self.c.next in _QUALIFIERS:
            said.add(self.c.take())
        name = self.c.take()
        found = NAMED.get(name) or self.unit.structures.get(name)
        if found is None:
            raise self.c.error(f"'{name}' is no type")
        self.constant = "const" in said
        while self.c.accept("*"):
            shared = "__local" in said
            found = CType(
                Kind.POINTER, 32 if shared else 64, of=found, shared=shared, packed="packed" in said,
                volatile="volatile" in said,
            )  # fmt: skip
        return found

    # --- statements ---------------------------------------------------------------------------------

    def statement(self) -> None:
        """The statement that begins here."""
        token = self.c.next
        self.revive()
        handler = self._STATEMENTS.get(token)
        if handler is not None:
            self.c.take()
            handler(self)
        elif self._begins_type(token):
            self._declaration()
        else:
            self._assignment()
            self.c.expect(";")

    def _compound(self) -> None:
        self.scopes.append({})
        while not self.c.accept("}"):
            self.statement()
        self.scopes.pop()

    def _declaration(self) -> None:
        ty = self.type()
        steady = self.constant
        while True:
            name, kind = self.c.take(), ty
            if self.c.accept("["):
                kind = CType(Kind.ARRAY, of=ty, count=int(self.c.take()))
                self.c.expect("]")
            value = self._initial(kind) if self.c.accept("=") else None
            if steady and value is not None:
                self.scopes[-1][name] = value
            else:
                self._bind(name, kind, value)
            if not self.c.accept(","):
                break
        self.c.expect(";")

    def _initial(self, ty: CType) -> Value:
        if self.c.next == "{":
            return self._braced(ty)
        return self.convert(self.expression(), ty)

    def _braced(self, ty: CType) -> Value:
        """A structure of words in braces; those that are not written are 0."""
        for _ in range(2):
            self.c.expect("{")
        words = []
        while not self.c.accept("}"):
            words.append(self.id(self.convert(self.expression(), ULONG)))
            self.c.accept(",")
        self.c.expect("}")
        words += [self.id(Value(ULONG, constant=0))] * (ty.count - len(words))
        array = CType(Kind.ARRAY, of=ULONG, count=ty.count)
        return self.make(Op.CompositeConstruct, ty, self.made(Op.CompositeConstruct, self.type_id(array), *words))

    def _assignment(self) -> None:
        target = self._unary()
        sign = _ASSIGNED.get(self.c.next)
        if sign is None:
            return
        self.c.take()
        if not isinstance(target, Place):
            raise self.c.error("this cannot be assigned to")
        value = self.expression()
        self.store(target, self.binary(sign, self.load(target), value) if sign else value)

    def _if(self) -> None:
        taken, other, merge = (self.m.fresh() for _ in range(3))
        self.c.expect("(")
        condition = self.id(self.convert(self.expression(), BOOL))
        self.c.expect(")")
        self.do(Op.SelectionMerge, merge, 0)
        self.leave(Op.BranchConditional, condition, taken, other)
        place = len(self.out) - 1
        self.label(taken)
        self.statement()
        self.leave(Op.Branch, merge)
        if self.c.accept("else"):
            self.label(other)
            self.statement()
            self.leave(Op.Branch, merge)
        else:
            self.out[place] = merge
        self.label(merge)

    def _for(self) -> None:
        self.scopes.append({})
        self.c.expect("(")
        if not self.c.accept(";"):
            if self._begins_type(self.c.next):
                self._declaration()
            else:
                self._assignment()
                self.c.expect(";")
        self._loop()
        self.scopes.pop()

    def _while(self) -> None:
        self.c.expect("(")
        self._loop(stepped=False)

    def _loop(self, *, stepped: bool = True) -> None:
        """A loop from its condition on."""
        head, test, body, again, merge = (self.m.fresh() for _ in range(5))
        self.leave(Op.Branch, head)
        self.label(head)
        self.do(Op.LoopMerge, merge, again, 0)
        self.leave(Op.Branch, test)
        self.label(test)
        end = ";" if stepped else ")"
        if self.c.next == end:
            self.leave(Op.Branch, body)
        else:
            condition = self.id(self.convert(self.expression(), BOOL))
            self.leave(Op.BranchConditional, condition, body, merge)
        self.c.expect(end)
        step = self.c.at
        if stepped:
            self.c.skip_to_close()
        self.label(body)
        self._inside(merge, again)
        self.leave(Op.Branch, again)
        self.label(again)
        behind, self.c.at = self.c.at, step
        if stepped and self.c.next != ")":
            self._assignment()
        self.c.at = behind
        self.leave(Op.Branch, head)
        self.label(merge)

    def _do(self) -> None:
        head, body, again, merge = (self.m.fresh() for _ in range(4))
        self.leave(Op.Branch, head)
        self.label(head)
        self.do(Op.LoopMerge, merge, again, 0)
        self.leave(Op.Branch, body)
        self.label(body)
        self._inside(merge, again)
        self.leave(Op.Branch, again)
        self.label(again)
        for token in ("while", "("):
            self.c.expect(token)
        condition = self.id(self.convert(self.expression(), BOOL))
        for token in (")", ";"):
            self.c.expect(token)
        self.leave(Op.BranchConditional, condition, head, merge)
        self.label(merge)

    def _inside(self, merge: int, again: int) -> None:
        """The body of a loop."""
        self.breaks.append(merge)
        self.continues.append(again)
        self.statement()
        self.breaks.pop()
        self.continues.pop()

    def _switch(self) -> None:
        self.c.expect("(")
        selector = self.id(self.convert(self.expression(), UINT))
        for token in (")", "{"):
            self.c.expect(token)
        merge = self.m.fresh()
        outer, default, cases = self.out, merge, []
        self.out, self.block = [], 0
        self.breaks.append(merge)
        while not self.c.accept("}"):
            if self.c.next in ("case", "default"):
                label = self.m.fresh()
                if self.c.take() == "default":
                    default = label
                else:
                    cases += [int(self.c.take()), label]
                self.c.expect(":")
                self.leave(Op.Branch, label)
                self.label(label)
            else:
                self.statement()
        self.leave(Op.Branch, merge)
        self.breaks.pop()
        self.out, bodies = outer, self.out
        self.do(Op.SelectionMerge, merge, 0)
        self.do(Op.Switch, selector, default, *cases)
        self.out.extend(bodies)
        self.label(merge)

    def _break(self) -> None:
        self.c.expect(";")
        self.leave(Op.Branch, self.breaks[-1])

    def _continue(self) -> None:
        self.c.expect(";")
        self.leave(Op.Branch, self.continues[-1])

    def _return(self) -> None:
        if self.c.accept(";"):
            self.leave(Op.Return)
            return
        value = self.id(self.convert(self.expression(), self.result))
        self.c.expect(";")
        self.leave(Op.ReturnValue, value)

    _STATEMENTS: Mapping[str, Callable[[_Compiler], None]] = {
        "{": _compound, "if": _if, "for": _for, "while": _while, "do": _do, "switch": _switch, "break": _break,
        "continue": _continue, "return": _return, ";": lambda self: None,
    }  # fmt: skip

    # --- expressions --------------------------------------------------------------------------------

    def value(self, found: Value | Place) -> Value:
        return self.load(found) if isinstance(found, Place) else found

    def expression(self) -> Value:
        """The expression that begins here, but for assignments."""
        condition = self._operators(1)
        if not self.c.accept("?"):
            return condition

        def other() -> Value:
            self.c.expect(":")
            return self.expression()

        return self.chosen(condition, (self.expression, other))

    def _operators(self, least: int) -> Value:
        left = self.value(self._unary())
        while (rank := _PRECEDENCE.get(self.c.next, 0)) >= least:
            sign = self.c.take()
            if sign in ("&&", "||"):
                further: Callable[[], Value] = lambda rank=rank: self._operators(rank + 1)  # type: ignore[misc]
                known = Value(BOOL, constant=int(sign == "||"))
                arms = (further, lambda known=known: known) if sign == "&&" else (lambda known=known: known, further)
                left = self.chosen(left, arms, BOOL)
            else:
                left = self.binary(sign, left, self._operators(rank + 1))
        return left

    def _unary(self) -> Value | Place:
        token = self.c.next
        if token == "(" and self._begins_type(self.c.ahead(1)):
            self.c.take()
            ty = self.type()
            self.c.expect(")")
            if self.c.next == "{":
                return self._postfix(self._braced(ty))
            return self.convert(self.value(self._unary()), ty)
        if token in ("++", "--"):
            self.c.take()
            place = self._unary()
            assert isinstance(place, Place)
            self._stepped(place, token)
            return self.load(place)
        if token == "*":
            self.c.take()
            pointer = self.value(self._unary())
            return Place(pointer.ty.pointee, self.id(pointer), pointer.ty)
        if token in ("-", "~", "!", "+"):
            self.c.take()
            value = self.value(self._unary())
            if token == "+":
                return value
            if token == "!":
                return self.refuted(value)
            return self.negated(value) if token == "-" else self.inverted(value)
        return self._postfix(self._primary())

    def _stepped(self, place: Place, token: str) -> Value:
        """Add or take one; what was there before."""
        before = self.load(place)
        self.store(place, self.binary(token[0], before, Value(INT, constant=1)))
        return before

    def _postfix(self, found: Value | Place) -> Value | Place:
        while True:
            token = self.c.next
            if token == "[":
                self.c.take()
                index = self.expression()
                self.c.expect("]")
                if found.ty.kind is Kind.ARRAY:
                    assert isinstance(found, Place)
                    found = self._element(found, index)
                else:
                    pointer = self.moved(self.value(found), index)
                    found = Place(pointer.ty.pointee, pointer.id, pointer.ty)
            elif token == ".":
                for expected in (".", "w", "["):
                    self.c.expect(expected)
                index = self.expression()
                self.c.expect("]")
                found = self._word_of(found, index)
            elif token in ("++", "--") and isinstance(found, Place):
                self.c.take()
                found = self._stepped(found, token)
            else:
                return found

    def _element(self, array: Place, index: Value, *through: int) -> Place:
        """A part of a variable."""
        self.risky += 1
        ty = array.ty.pointee if not through else ULONG
        pointer = self.m.pointer(array.space, self.type_id(ty))
        at = self.made(Op.AccessChain, pointer, array.pointer, *through, self.id(index))
        return Place(ty, at, space=array.space)

    def _word_of(self, found: Value | Place, index: Value) -> Value | Place:
        """A word of a structure."""
        if isinstance(found, Place) and found.behind is None:
            return self._element(found, index, self.m.word(0))
        if index.constant is None:
            raise self.c.error("a value has no words by number")
        return self.make(Op.CompositeExtract, ULONG, self.value(found).id, 0, int(index.constant))

    def _primary(self) -> Value | Place:
        token = self.c.take()
        if token == "(":
            found = self.expression()
            self.c.expect(")")
            return found
        if token[:1].isdigit():
            return literal(token)
        if self.c.next == "(":
            return self._call(token)
        for scope in reversed(self.scopes):
            if token in scope:
                return scope[token]
        if token in self.unit.tables:
            return self.unit.tables[token]
        if token == "INFINITY":
            return Value(FLOAT, constant=math.inf)
        raise self.c.error(f"there is no '{token}'")

    # --- calls --------------------------------------------------------------------------------------

    def _call(self, name: str) -> Value:
        self.c.expect("(")
        given: list[Value] = []
        while not self.c.accept(")"):
            given.append(self.expression())
            self.c.accept(",")
        if name.startswith("as_") and name[3:] in NAMED:
            return self.bits_as(given[0], NAMED[name[3:]])
        if name in EXTENDED:
            real = DOUBLE if any(v.ty == DOUBLE for v in given) else FLOAT
            return self.extended(EXTENDED[name], real, *(self.convert(v, real) for v in given))
        if name in self._ASKED:
            return self._ASKED[name](self, given)
        found = self.unit.functions.get(name) or self._written(name, given)
        numbers = [
            self.id(self.convert(v, ty)) for v, ty in zip(given, found.parameters, strict=True)
        ]  # fmt: skip
        self.risky += 1
        return self.make(Op.FunctionCall, found.result, found.id, *numbers)

    def _written(self, name: str, given: list[Value]) -> Function:
        """A function of the library, compiled when it is first called."""
        full = f"{name} {'double' if given[:1] and given[0].ty == DOUBLE else 'float'}"
        full = full if full in WRITTEN else name
        if full not in WRITTEN:
            raise self.c.error(f"there is no function '{name}'")
        if full not in self.unit.functions:
            _Compiler(self.unit, Cursor(WRITTEN[full])).function()
            self.unit.functions[full] = self.unit.functions.pop(name)
        return self.unit.functions[full]

    def _index(self, which: int) -> Value:
        m, word = self.m, self.m.integer(32)
        place = self.made(Op.AccessChain, m.pointer(Space.Input, word), m.built_in(which), m.word(0))
        return Value(UINT, self.made(Op.Load, word, place))

    def _meeting(self, given: list[Value]) -> Value:
        self.meet()
        return Value(VOID)

    def _fencing(self, given: list[Value]) -> Value:
        self.fence()
        return Value(VOID)

    _ASKED: Mapping[str, Callable[[_Compiler, list[Value]], Value]] = {
        "get_group_id": lambda self, given: self._index(spirv.WORKGROUP_ID),
        "get_local_id": lambda self, given: self._index(spirv.LOCAL_INVOCATION_ID),
        "get_local_size": lambda self, given: Value(UINT, self.m.specialized(BLOCK_SIZE, 1)),
        "top_bit": lambda self, given: self.extended(TOP_BIT, INT, *given),
        "atomic_cmpxchg": lambda self, given: self.exchanged(*given),
        "atomic_min": lambda self, given: self.lowered(*given),
        "barrier": _meeting,
        "mem_fence": _fencing,
    }
