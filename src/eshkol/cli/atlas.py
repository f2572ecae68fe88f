"""`eshkol atlas run | asm | dis | check | opt | emit`: Atlas programs from the command line.

Comes in: the parsed options, of which FILE is assembler text, a JSON program, a JSON kernel or a circuit.
Goes out: text on stdout or in a file, buffers in .npy files. Faults of the arguments are `UsageError`s, faults
of the program `EshkolError`s; `main.py` turns both into words and exit codes. NumPy and the atlas modules are
imported by the commands, not by this module, to keep `eshkol --version` quick.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eshkol.cli.usage import UsageError
from eshkol.cli.values import (
    as_usage,
    describe_param,
    read_arguments,
    read_array,
    reason_of,
    save_npy,
    summarize,
)
from eshkol.errors import EshkolError, IsaError

if TYPE_CHECKING:
    from rich.table import Table

    from eshkol.atlas.program import LaunchConfig, Param, Program
    from eshkol.atlas.types import Array, Type
    from eshkol.backends.base import Backend

FILE_LIMIT = 64 << 20  # bytes of source that are read
FORMATS = {".atlas": "atlas", ".json": "json", ".circuit": "circuit"}
SHOWN_PAGES = 24  # of the pages of class memory that a run changed

EPILOG = """\
FILE is known by its name, or by --format; '-' reads standard input and needs --format:
  .atlas      assembler text
  .json       a program in JSON (it has the key "atlas") or a JSON kernel (it has the key "kernel")
  .circuit    a circuit over class memory"""

VALUES_HELP = """\
VALUE of a parameter:
  2.5           a number: a scalar, or a buffer of one element
  1,2,3         a buffer of these numbers
  @file.npy     a buffer with the elements of a NumPy file
  zeros:N  ones:N  arange:N       N zeros, N ones, or 0, 1, ... N-1
  random:N[:SEED]                 N numbers from [0, 1), or of 0 ... 99 in an integer buffer; SEED is 0 unless said
  pool:BYTES    a pool
Where the program states a buffer's count, :N may be left out: zeros, ones, arange, random.

Class memory can be filled before the run, by class and page (0 unless said): --class 1@2=ones:64. Pages of it
that the run changed are shown after it. --class-type says how to read it; left out, it is the type the program
uses there, or F32 for circuits and where it uses several.

examples:
  eshkol atlas run saxpy.atlas --lanes 8 --param n=8 --param a=2 --param x=arange:8 --param y=ones:8
  eshkol atlas run transpose.atlas --grid 3,2 --block 16,16 --shared 1088 \\
                   --param in=@matrix.npy --param out=zeros:1536 --save out=transposed.npy
  echo 'merge@c00[c01,c02]' | eshkol atlas run - --format circuit --class 0=1,2 --class 1=3,4

""" + EPILOG  # fmt: skip


# --- the command line -----------------------------------------------------------------------------


def add_commands(commands: Any) -> None:
    """Add every atlas command to a set of sub-parsers."""

    def command(name: str, verb: Callable[[argparse.Namespace], None], doc: str, epilog: str = EPILOG) -> Any:
        parser = commands.add_parser(name, help=doc, description=doc[0].upper() + doc[1:] + ".", epilog=epilog)
        parser.add_argument("file", metavar="FILE", help="the program; '-' is standard input")
        parser.add_argument("--format", choices=sorted(FORMATS.values()), help="what FILE holds, whatever its name")
        parser.set_defaults(run=_with_names(verb, parser.prog))
        return parser

    def output(parser: Any) -> None:
        parser.add_argument("-o", "--output", metavar="OUT", help="write to this file instead of standard output")

    run = command("run", _run, "run a program and print the buffers it wrote", VALUES_HELP)
    run.add_argument("--backend", metavar="NAME", default="reference", help="where to run it (default: reference)")
    run.add_argument("--lanes", type=_positive, metavar="N", help="at least N lanes in one dimension (default: 1)")
    run.add_argument("--grid", type=_extent, metavar="X,Y,Z", help="blocks in the launch")
    run.add_argument("--block", type=_extent, metavar="X,Y,Z", help="lanes in a block")
    run.add_argument("--shared", type=_count, metavar="BYTES", default=0, help="shared memory of a block")
    run.add_argument("--param", action="append", default=[], metavar="NAME=VALUE", help="fill a parameter; see below")
    run.add_argument("--class", dest="classes", action="append", default=[], metavar="CLASS[@PAGE]=VALUE",
                     help="fill class memory; see below")  # fmt: skip
    run.add_argument("--class-type", metavar="TYPE", help="element type of class memory")
    run.add_argument("--optimize", action="store_true", help="optimize the program first")
    run.add_argument("--all", action="store_true", help="print all buffers, not only those the program may write")
    run.add_argument("--save", action="append", default=[], metavar="NAME=FILE.npy", help="save a buffer after the run")
    output(command("asm", _asm, "translate a program to JSON"))
    output(command("dis", _dis, "translate a program to assembler text"))
    command("check", _check, "validate a program and say what it uses")
    opt = command("opt", _opt, "optimize a program and print it as assembler text")
    opt.add_argument("--passes", metavar="A,B,...", help="only these passes, in this order")
    opt.add_argument("--no-contract", action="store_true", help="keep float products and sums apart: the same bits")
    opt.add_argument("--stats", action="store_true", help="print instruction counts before and after, on stderr")
    output(opt)
    emit = command("emit", _emit, "print the code that a backend makes of a program")
    emit.add_argument("--backend", metavar="NAME", default="reference", help="the backend (default: reference)")
    emit.add_argument("--target", metavar="TARGET", help="the kind of code (default: the backend's first)")
    output(emit)


def _with_names(verb: Callable[[argparse.Namespace], None], prog: str) -> Callable[[argparse.Namespace], None]:
    """The command, with its name in usage errors and the file's name in errors of the translators."""

    def run(options: argparse.Namespace) -> None:
        try:
            verb(options)
        except UsageError as error:
            error.prog = prog
            raise
        except EshkolError as error:
            if error.span is not None and error.span.file in ("<kernel>", "<circuit>"):
                error.span = error.span._replace(file=_shown_name(options.file))
            raise

    return run


def _count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise argparse.ArgumentTypeError(f"expected a whole number, not '{text}'")
    return int(text)


def _positive(text: str) -> int:
    number = _count(text)
    if number == 0:
        raise argparse.ArgumentTypeError("expected a number of at least 1, not '0'")
    return number


def _extent(text: str) -> tuple[int, int, int]:
    """X or X,Y or X,Y,Z; what is left out is 1."""
    numbers = [_positive(part) for part in text.split(",")]
    if len(numbers) > 3:
        raise argparse.ArgumentTypeError(f"expected at most three numbers, not '{text}'")
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def _pairs(given: Iterable[str], option: str, wanted: str) -> dict[str, str]:
    """NAME=VALUE arguments as a dictionary."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise UsageError(f"{option} '{text}': expected {wanted}")
        if name in found:
            raise UsageError(f"{option}: '{name}' is given twice")
        found[name] = value
    return found


# --- files ----------------------------------------------------------------------------------------


def _shown_name(file: str) -> str:
    return "<stdin>" if file == "-" else file


def _read(file: str) -> str:
    """The text of a file or of standard input, if it is not too long."""
    name = _shown_name(file)
    try:
        if file == "-":
            data = sys.stdin.buffer.read(FILE_LIMIT + 1)
        else:
            with open(file, "rb") as stream:  # a pipe has no size beforehand, so the read itself is bounded
                data = stream.read(FILE_LIMIT + 1)
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        raise UsageError(f"cannot read '{name}': {reason_of(error)}") from None
    if len(data) > FILE_LIMIT:
        raise UsageError(f"'{name}' is longer than {FILE_LIMIT >> 20} MiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise IsaError(f"{name} is not UTF-8 text: byte {error.start} does not belong there") from None


def _write(file: str | None, text: str) -> None:
    """Text to a file, or to standard output."""
    if file is None or file == "-":
        print(text.removesuffix("\n"))
        return
    try:
        Path(file).write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot write '{file}': {reason_of(error)}") from None


def _kind_of(file: str, given_format: str | None) -> str | None:
    return given_format or FORMATS.get(Path(file).suffix.lower())


def load(file: str, given_format: str | None = None) -> Program:
    """The program in a file of any kind."""
    kind = _kind_of(file, given_format)
    if kind is None:
        what = "standard input" if file == "-" else f"'{file}'"
        raise UsageError(f"what does {what} hold? say --format {', '.join(sorted(FORMATS.values()))}")
    source, name = _read(file), _shown_name(file)
    try:
        return _translate(source, kind, name)
    except EshkolError as error:
        if error.span is None and name not in error.message:
            error.message = f"{name}: {error.message}"
        raise


def _translate(source: str, kind: str, name: str) -> Program:
    if kind == "atlas":
        from eshkol.atlas.text import assemble

        return assemble(source, name)
    from eshkol.atlas.translate import translate_circuit, translate_kernel

    if kind == "circuit":
        return translate_circuit(source)
    from eshkol.atlas.jsonform import from_json, parse_json

    data = parse_json(source, name)
    if not isinstance(data, Mapping) or not data.keys() & {"atlas", "kernel"}:
        raise IsaError(
            "neither a program nor a kernel", hint='a program has the key "atlas", a kernel the key "kernel"'
        )
    return from_json(data) if "atlas" in data else translate_kernel(source)


# --- translating, checking, optimizing -------------------------------------------------------------


def _asm(options: argparse.Namespace) -> None:
    from eshkol.atlas.jsonform import dumps

    _write(options.output, dumps(load(options.file, options.format)))


def _dis(options: argparse.Namespace) -> None:
    from eshkol.atlas.program import disassemble

    _write(options.output, disassemble(load(options.file, options.format)))


def _check(options: argparse.Namespace) -> None:
    from eshkol.atlas.validate import validate

    program = load(options.file, options.format)
    validate(program)
    params = ", ".join(describe_param(p) for p in program.params) or "no parameters"
    used = Counter(i.op.name for i in program.instructions if i.op.is_extension)
    extensions = ", ".join(name if n == 1 else f"{name} ×{n}" for name, n in sorted(used.items())) or "none"
    count = f"{len(program)} instruction{'s' * (len(program) != 1)}"
    print(f"{_shown_name(options.file)}: ok; {count}; {params}; extensions: {extensions}")


def _opt(options: argparse.Namespace) -> None:
    from eshkol.atlas.optimize import PASSES, optimize

    passes = None if options.passes is None else [name.strip() for name in options.passes.split(",")]
    for name in passes or ():
        if name not in PASSES:
            raise UsageError(f"--passes: there is no pass '{name}'; passes: {', '.join(PASSES)}")
    before = load(options.file, options.format)
    after = optimize(before, passes, contract=not options.no_contract)
    _write(options.output, str(after))
    if options.stats:
        _print_stats(before, after)


def _print_stats(before: Program, after: Program) -> None:
    counts = [Counter(i.op.name for i in program.instructions) for program in (before, after)]
    table = _table("instruction", ">before", ">after")
    for name in sorted(counts[0].keys() | counts[1].keys()):
        if counts[0][name] != counts[1][name]:
            table.add_row(name, str(counts[0][name]), str(counts[1][name]))
    table.add_section()
    table.add_row("all", str(len(before)), str(len(after)))
    _print(table, stderr=True)


def _emit(options: argparse.Namespace) -> None:
    program = load(options.file, options.format)
    backend = _open(options.backend)
    target = options.target or next(iter(backend.targets), "")
    if target not in backend.targets:
        known = ", ".join(backend.targets) or "nothing"
        raise UsageError(f"--target: the {backend.name} backend does not emit '{target}'; it emits {known}")
    _write(options.output, backend.compile_to(target, program))


def _open(name: str) -> Backend:
    from eshkol.backends import NAMES, open_backend

    if name not in NAMES:
        raise UsageError(f"--backend: there is no backend '{name}'; backends: {', '.join(NAMES)}")
    return open_backend(name)


# --- running --------------------------------------------------------------------------------------


def _run(options: argparse.Namespace) -> None:
    from eshkol.atlas.classes import PAGE_BYTES
    from eshkol.atlas.types import Type
    from eshkol.atlas.validate import validate
    from eshkol.backends.base import TypedBuffer

    launch = _launch(options)
    program = load(options.file, options.format)
    saves = _pairs(options.save, "--save", "NAME=FILE.npy")
    arguments = read_arguments(program, _pairs(options.param, "--param", "NAME=VALUE"))
    for name in saves:
        if name not in arguments.arrays:
            known = ", ".join(arguments.arrays) or "none"
            raise UsageError(f"--save: the program has no buffer '{name}'; its buffers: {known}")
    class_types = _class_types(program)
    class_type = Type.F32
    if options.class_type is not None:
        class_type = as_usage("--class-type", lambda: Type.parse(options.class_type))
    elif len(class_types) == 1 and _kind_of(options.file, options.format) != "circuit":
        class_type = next(iter(class_types))
    if class_type.size_bytes > PAGE_BYTES:
        raise UsageError(f"--class-type: {class_type} does not fit a page of {PAGE_BYTES} bytes")
    fills = [_class_fill(name, value, class_type) for name, value in _pairs(
        options.classes, "--class", "CLASS[@PAGE]=VALUE").items()]  # fmt: skip
    try:
        validate(program, launch)
    except IsaError as error:
        needed = re.search(r"shared_memory=(\d+)", error.hint or "")
        error.hint = f"launch with --shared BYTES, at least {needed[1]}" if needed else error.hint
        raise
    if options.optimize:
        from eshkol.atlas.optimize import optimize

        program = optimize(program)
    backend = _open(options.backend)
    placed = arguments.place(backend, program)
    for start, values in fills:
        write_class_memory(backend, start, values, class_type)
    classes_before = read_class_memory(backend) if class_types or fills else None
    began = time.perf_counter()
    backend.execute(program, launch, placed)
    elapsed = time.perf_counter() - began
    _print_summary(program, backend, launch, elapsed)
    shown = [p for p in program.params if p.kind.value != "scalar" and (options.all or p.name in written(program))]
    _print_results(backend, shown, placed)
    if classes_before is not None:
        _print_classes(classes_before, read_class_memory(backend), class_type)
    for name, file in saves.items():
        buffer = placed[name]
        assert isinstance(buffer, TypedBuffer)
        save_npy(file, buffer)


def _launch(options: argparse.Namespace) -> LaunchConfig:
    from eshkol.atlas.program import LaunchConfig

    def make() -> LaunchConfig:
        if options.lanes is None:
            return LaunchConfig(options.grid or (1, 1, 1), options.block or (1, 1, 1), options.shared)
        if options.grid is not None:
            raise UsageError("--lanes and --grid exclude each other")
        x, y, z = options.block or (256, 1, 1)
        if (y, z) != (1, 1):
            raise UsageError("--lanes is for launches in one dimension: give --grid with --block X,Y,Z")
        return LaunchConfig.linear(options.lanes, x, options.shared)

    return as_usage("launch", make)


def written(program: Program) -> set[str]:
    """The names of the buffers and pools that the program may write."""
    from eshkol.atlas.isa import Kind
    from eshkol.atlas.operands import BufferOffset, PoolOffset, address_base

    names = {i.pool for i in program.instructions if i.op.name == "PoolStore"}
    for instruction in program.instructions:
        for address in instruction.of_kind(Kind.WRITE, Kind.UPDATE):
            base = address_base(address)
            if isinstance(base, BufferOffset | PoolOffset):
                names.add(base.handle)
    return names


# --- class memory -----------------------------------------------------------------------------------

# Backends have no call for the host to reach class memory, but any of them runs these two programs.
_CLASS_READER = """
.buffer data U32
    MOV_IMM.U64 r0, 4
    MUL r1, r255, r0
    LDG.U32 r2, [r1]
    STG.U32 [data+r255*4], r2
"""
_CLASS_WRITER = """
.scalar start U64
.scalar count U64
.buffer data U8
    LDG.U64 r0, [count]
    SETcc.GE p0, r255, r0
    BRA done, p0
    LDG.U64 r1, [start]
    ADD r1, r1, r255
    LDG.U8 r2, [data+r255]
    STG.U8 [r1], r2
done:
    EXIT
"""


def read_class_memory(backend: Backend) -> Array:
    """All of class memory as bytes, of shape classes × pages × 256."""
    import numpy as np

    from eshkol.atlas.classes import CLASS_MEMORY_BYTES, CLASSES, PAGE_BYTES, PAGES
    from eshkol.atlas.program import LaunchConfig
    from eshkol.atlas.text import assemble
    from eshkol.atlas.types import Type

    words = backend.allocate_typed(Type.U32, CLASS_MEMORY_BYTES // 4)
    backend.execute(assemble(_CLASS_READER), LaunchConfig.linear(words.count), {"data": words})
    found = np.ascontiguousarray(words.read()).view(np.uint8).reshape(CLASSES, PAGES, PAGE_BYTES)
    words.free()
    return found


def write_class_memory(backend: Backend, start: int, values: Array, ty: Type) -> None:
    """Put elements of a type into class memory, from a linear byte address on."""
    from eshkol.atlas.program import LaunchConfig
    from eshkol.atlas.text import assemble
    from eshkol.atlas.types import Type, encode

    data = backend.array(encode(values, ty).reshape(-1), Type.U8)
    given = {"start": start, "count": data.count, "data": data}
    backend.execute(assemble(_CLASS_WRITER), LaunchConfig.linear(data.count), given)
    data.free()


def _class_types(program: Program) -> set[Type]:
    """The types of the elements that a program reads or writes in class memory."""
    from eshkol.atlas.isa import element_type
    from eshkol.atlas.operands import ClassOffset, address_base
    from eshkol.atlas.validate import memory_operands

    found = {i.ty for i in program.instructions if i.op.name in ("NBRLoad", "NBRStore")}
    for instruction in program.instructions:
        for field, address in memory_operands(instruction):
            base = address_base(address)
            if base is None or isinstance(base, ClassOffset):
                found.add(element_type(instruction, field))
    return found


def _class_fill(place: str, text: str, ty: Type) -> tuple[int, Array]:
    """The linear address and the elements of --class CLASS[@PAGE]=VALUE."""
    from eshkol.atlas.classes import CLASS_BYTES, CLASSES, PAGE_BYTES, PAGES

    option = f"--class {place}"
    match = re.fullmatch(r"([0-9]{1,3})(?:@([0-9]{1,3}))?", place)
    class_id, page = (int(match[1]), int(match[2] or 0)) if match else (CLASSES, 0)
    if class_id >= CLASSES or page >= PAGES:
        raise UsageError(f"{option}: expected a class of 0 to {CLASSES - 1}, and after @ a page of 0 to {PAGES - 1}")
    values = read_array(text, ty, option, PAGE_BYTES // ty.size_bytes)
    room = CLASS_BYTES - page * PAGE_BYTES
    if not 0 < values.size * ty.size_bytes <= room:
        raise UsageError(f"{option}: {values.size} elements of {ty} do not fit the {room} bytes from page {page} on")
    return class_id * CLASS_BYTES + page * PAGE_BYTES, values


# --- showing results --------------------------------------------------------------------------------


def _table(*headers: str) -> Table:
    """A plain table; a header that begins with '>' makes a column of numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for header in headers:
        right = header.startswith(">")
        table.add_column(header.lstrip(">"), justify="right" if right else "left", overflow="fold")
    return table


def _print(table: Table, stderr: bool = False) -> None:
    from rich.console import Console

    Console(stderr=stderr, highlight=False, markup=False).print(table)


def _print_summary(program: Program, backend: Backend, launch: LaunchConfig, elapsed: float) -> None:
    lanes = f"{launch.total_threads} lane{'s' * (launch.total_threads != 1)}"
    if launch.blocks > 1:
        grid, block = ("×".join(map(str, extent)) for extent in (launch.grid, launch.block))
        lanes += f" (grid {grid} of blocks {block})"
    print(f"{program.name} on {backend.name}: {lanes}, {elapsed * 1e3:.2f} ms")


def _print_results(backend: Backend, params: Iterable[Param], placed: Mapping[str, Any]) -> None:
    import numpy as np

    from eshkol.atlas.types import Type

    table = _table("buffer", "type", ">count", "values")
    for param in params:
        if param.ty is None:
            handle = placed[param.name]
            raw = np.frombuffer(backend.copy_from_pool(handle, 0, backend.pool_size(handle)), np.uint8)
            table.add_row(f"pool {param.name}", "bytes", str(raw.size), summarize(raw, Type.U8))
        else:
            values = placed[param.name].read()
            table.add_row(param.name, param.ty.name, str(values.size), summarize(values, param.ty))
    if table.row_count:
        print()
        _print(table)


def _print_classes(before: Array, after: Array, ty: Type) -> None:
    """The pages of class memory that are not what they were."""
    import numpy as np

    from eshkol.atlas.types import decode

    table = _table(">class", ">page", "type", "values")
    for class_id, page in np.argwhere((before != after).any(axis=2)).tolist():
        if table.row_count == SHOWN_PAGES:
            table.add_row("…", "", "", "")
            break
        values = decode(after[class_id, page].reshape(-1, ty.size_bytes), ty)
        table.add_row(str(class_id), str(page), ty.name, summarize(values, ty))
    if table.row_count:
        print()
        _print(table)
