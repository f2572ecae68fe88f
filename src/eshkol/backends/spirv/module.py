"""The parts of a module of SPIR-V, and how they become words.

Comes in: types, constants, decorations and functions as they are needed, each of the first two once. Goes out: the
bytes of a module, in the order that the standard asks for. Names of instructions and of what they take are the
standard's (`Op`, and the tables behind it).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from enum import IntEnum

MAGIC, VERSION = 0x07230203, 0x00010500


class Op(IntEnum):
    """The instructions that are used."""

    ExtInstImport = 11
    ExtInst = 12
    MemoryModel = 14
    EntryPoint = 15
    ExecutionMode = 16
    Capability = 17
    TypeVoid = 19
    TypeBool = 20
    TypeInt = 21
    TypeFloat = 22
    TypeVector = 23
    TypeArray = 28
    TypeStruct = 30
    TypePointer = 32
    TypeFunction = 33
    ConstantTrue = 41
    ConstantFalse = 42
    Constant = 43
    ConstantComposite = 44
    ConstantNull = 46
    SpecConstant = 50
    SpecConstantComposite = 51
    Function = 54
    FunctionParameter = 55
    FunctionEnd = 56
    FunctionCall = 57
    Variable = 59
    Load = 61
    Store = 62
    AccessChain = 65
    Decorate = 71
    MemberDecorate = 72
    CompositeConstruct = 80
    CompositeExtract = 81
    ConvertFToU = 109
    ConvertFToS = 110
    ConvertSToF = 111
    ConvertUToF = 112
    UConvert = 113
    SConvert = 114
    FConvert = 115
    ConvertUToPtr = 120
    Bitcast = 124
    SNegate = 126
    FNegate = 127
    IAdd = 128
    FAdd = 129
    ISub = 130
    FSub = 131
    IMul = 132
    FMul = 133
    UDiv = 134
    SDiv = 135
    FDiv = 136
    UMod = 137
    SRem = 138
    LogicalOr = 166
    LogicalAnd = 167
    LogicalNot = 168
    Select = 169
    IEqual = 170
    INotEqual = 171
    UGreaterThan = 172
    SGreaterThan = 173
    UGreaterThanEqual = 174
    SGreaterThanEqual = 175
    ULessThan = 176
    SLessThan = 177
    ULessThanEqual = 178
    SLessThanEqual = 179
    FOrdEqual = 180
    FUnordNotEqual = 183
    FOrdLessThan = 184
    FOrdGreaterThan = 186
    FOrdLessThanEqual = 188
    FOrdGreaterThanEqual = 190
    ShiftRightLogical = 194
    ShiftRightArithmetic = 195
    ShiftLeftLogical = 196
    BitwiseOr = 197
    BitwiseXor = 198
    BitwiseAnd = 199
    Not = 200
    ControlBarrier = 224
    MemoryBarrier = 225
    AtomicLoad = 227
    AtomicCompareExchange = 230
    AtomicUMin = 237
    AtomicAnd = 240
    AtomicOr = 241
    Phi = 245
    LoopMerge = 246
    SelectionMerge = 247
    Label = 248
    Branch = 249
    BranchConditional = 250
    Switch = 251
    Return = 253
    ReturnValue = 254
    Unreachable = 255


class Capability(IntEnum):
    """What a module asks of a device."""

    Shader = 1
    Float64 = 10
    Int64 = 11
    Int64Atomics = 12
    Int16 = 22
    Int8 = 39
    StorageBuffer16BitAccess = 4433
    StorageBuffer8BitAccess = 4448
    DenormPreserve = 4464
    SignedZeroInfNanPreserve = 4466
    RoundingModeRTE = 4467
    VulkanMemoryModel = 5345
    PhysicalStorageBufferAddresses = 5347


class Space(IntEnum):
    """Kinds of memory."""

    Input = 1
    Workgroup = 4
    Private = 6
    Function = 7
    PushConstant = 9
    PhysicalStorageBuffer = 5349


LOCAL_SIZE = 17  # an execution mode
DENORM_PRESERVE, SIGNED_ZERO_INF_NAN_PRESERVE, ROUNDING_MODE_RTE = 4459, 4461, 4462
SPEC_ID, BLOCK, BUILT_IN, OFFSET, NO_CONTRACTION = 1, 2, 11, 35, 42  # decorations
WORKGROUP_SIZE, WORKGROUP_ID, LOCAL_INVOCATION_ID = 25, 26, 27
GL_COMPUTE = 5
PHYSICAL_STORAGE_BUFFER_64, VULKAN_MODEL = 5348, 3

Key = tuple[object, ...]


def words_of(text: str) -> list[int]:
    """A string as an instruction has it."""
    raw = text.encode() + b"\0"
    raw += b"\0" * (-len(raw) % 4)
    return list(struct.unpack(f"<{len(raw) // 4}I", raw))


class Module:
    """A module under construction."""

    def __init__(self) -> None:
        self.bound = 1
        self.capabilities: dict[int, None] = {Capability.Shader: None}
        self.modes: list[int] = []  # instructions, as all lists here
        self.decorations: list[int] = []
        self.globals: list[int] = []  # types, constants and variables
        self.functions: list[int] = []
        self.interface: list[int] = []  # variables that the entry point uses
        self._known: dict[Key, int] = {}
        self.extended = self.fresh()  # the instructions of GLSL.std.450

    def fresh(self) -> int:
        """A number that nothing has yet."""
        found = self.bound
        self.bound += 1
        return found

    def need(self, *capabilities: Capability) -> None:
        for one in capabilities:
            self.capabilities[one] = None

    @staticmethod
    def put(into: list[int], op: Op, *operands: int) -> None:
        """Add an instruction."""
        into.append(len(operands) + 1 << 16 | op)
        into.extend(operands)

    def decorate(self, target: int, *what: int) -> None:
        self.put(self.decorations, Op.Decorate, target, *what)

    def once(self, op: Op, *operands: int) -> int:
        """A type: the same number for the same one."""
        key = (op, *operands)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self.fresh()
            self.put(self.globals, op, found, *operands)
        return found

    def typed(self, op: Op, ty: int, *operands: int) -> int:
        """A constant: the same number for the same one."""
        key = (op, ty, *operands)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self.fresh()
            self.put(self.globals, op, ty, found, *operands)
        return found

    # --- types --------------------------------------------------------------------------------------

    def void(self) -> int:
        return self.once(Op.TypeVoid)

    def truth(self) -> int:
        return self.once(Op.TypeBool)

    def integer(self, bits: int) -> int:
        if bits == 64:
            self.need(Capability.Int64)
        return self.once(Op.TypeInt, bits, 0)

    def real(self, bits: int) -> int:
        if bits == 64:
            self.need(Capability.Float64)
        return self.once(Op.TypeFloat, bits)

    def pointer(self, space: Space, to: int) -> int:
        return self.once(Op.TypePointer, space, to)

    def array(self, of: int, count: int) -> int:
        return self.once(Op.TypeArray, of, self.word(count))

    # --- constants ----------------------------------------------------------------------------------

    def bits(self, ty: int, width: int, value: int) -> int:
        """A number of a type by its bits."""
        if width <= 32:
            return self.typed(Op.Constant, ty, value & 0xFFFFFFFF)
        return self.typed(Op.Constant, ty, value & 0xFFFFFFFF, value >> 32 & 0xFFFFFFFF)

    def word(self, value: int) -> int:
        return self.bits(self.integer(32), 32, value)

    def specialized(self, number: int, value: int) -> int:
        """A word that is only known when the module is loaded."""
        key = ("specialized", number)
        if key not in self._known:
            found = self._known[key] = self.fresh()
            self.put(self.globals, Op.SpecConstant, self.integer(32), found, value)
            self.decorate(found, SPEC_ID, number)
        return self._known[key]

    # --- variables ----------------------------------------------------------------------------------

    def variable(self, space: Space, ty: int, start: int | None = None) -> int:
        """A variable of the module."""
        found = self.fresh()
        self.put(self.globals, Op.Variable, self.pointer(space, ty), found, space, *([] if start is None else [start]))
        self.interface.append(found)
        return found

    def built_in(self, which: int) -> int:
        """A variable of three words that the machine fills."""
        key = ("built in", which)
        if key not in self._known:
            found = self._known[key] = self.variable(Space.Input, self.once(Op.TypeVector, self.integer(32), 3))
            self.decorate(found, BUILT_IN, which)
        return self._known[key]

    # --- the whole ----------------------------------------------------------------------------------

    def finished(self, entry: int, name: str) -> bytes:
        """The module with its entry point."""
        self.need(Capability.PhysicalStorageBufferAddresses, Capability.VulkanMemoryModel)
        words = [MAGIC, VERSION, 0, self.bound, 0]
        for one in sorted(self.capabilities):
            self.put(words, Op.Capability, one)
        self.put(words, Op.ExtInstImport, self.extended, *words_of("GLSL.std.450"))
        self.put(words, Op.MemoryModel, PHYSICAL_STORAGE_BUFFER_64, VULKAN_MODEL)
        self.put(words, Op.EntryPoint, GL_COMPUTE, entry, *words_of(name), *self.interface)
        self.put(words, Op.ExecutionMode, entry, LOCAL_SIZE, 1, 1, 1)  # the constant of the block's size replaces it
        for part in (self.modes, self.decorations, self.globals, self.functions):
            words.extend(part)
        return struct.pack(f"<{len(words)}I", *words)


def members(module: Module, types: Iterable[int], name: str) -> int:
    """A structure, of which there is one of a name."""
    key = ("structure", name)
    found = module._known.get(key)
    if found is None:
        found = module._known[key] = module.fresh()
        module.put(module.globals, Op.TypeStruct, found, *types)
    return found


def capabilities_of(code: bytes) -> list[Capability]:
    """What a finished module asks of a device."""
    words = struct.unpack(f"<{len(code) // 4}I", code)
    found, at = [], 5
    while words[at] & 0xFFFF == Op.Capability:
        found.append(Capability(words[at + 1]))
        at += words[at] >> 16
    return found
