"""`export_native`: a function as a shared library for C programs, without Python or anything of Eshkol.

The function is traced as `jit` does it, for the shapes and dtypes of example arguments. Tensors that it captures (the
weights of a model) become constants of the library. What comes out is the same plan over the same kernels that `jit`
runs, so results are the same bits. Ops that only the host has (LAPACK, sorting, complex numbers) cannot be exported.

With `dynamic=`, what is written takes any length of some axes: plans for all sizes (`dynamic.py`), one for each class.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eshkol.atlas.machines import MachineDescription
from eshkol.atlas.sequence import Runner, SequenceStep
from eshkol.errors import BackendUnavailable, EshkolError, TensorError
from eshkol.graph.node import Node, here, host_array
from eshkol.schedule.kernels.kernel import described
from eshkol.schedule.plan.steps import OnHost, Plan, walk
from eshkol.schedule.run import execute
from eshkol.schedule.run.failures import failure, where_asked
from eshkol.schedule.run.native import Joined, NativePlan
from eshkol.support.extents import LEAST
from eshkol.tensors import pytree
from eshkol.tensors.autograd import no_grad
from eshkol.tensors.dynamic import EXPECTED, Class, Refused, Template
from eshkol.tensors.jit import Traced, jit
from eshkol.tensors.value import as_node, is_input

if TYPE_CHECKING:  # functions import it when they need it: who exports nothing should not wait for the CPU backend
    from eshkol.backends.cpu.export import SizedExport
    from eshkol.backends.cpu.export_text import ExportedModel, ExportedOperand
    from eshkol.backends.cpu.simd import Level

# Words that cannot be names of parameters: of C, of C++, of the functions, and what some compilers define.
_RESERVED = """
    alignas alignof and asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl concept
    const consteval constexpr constinit const_cast continue decltype default delete do double dynamic_cast else enum
    explicit export extern false float for friend goto if inline int linux long mutable namespace new noexcept not
    nullptr operator or private protected public register reinterpret_cast requires restrict return short signed sizeof
    static static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename
    typeof union unix unsigned using virtual void volatile wchar_t while xor model inputs_ outputs_"""
RESERVED = frozenset(_RESERVED.split())
MOST_CLASSES = 256  # of sizes that one library takes


@dataclass(frozen=True)
class Exported:
    """What was written: the library, its header, and what the names of its functions begin with."""

    library: Path
    header: Path
    name: str


def export_native(
    function: Callable[..., Any], example_inputs: Any, path: str | os.PathLike[str], *, level: str | None = None,
    dynamic: Mapping[str | int, int | Sequence[int]] | None = None, largest: int = 256,
) -> Exported:  # fmt: skip
    """Write the function as a shared library for C programs, and its header beside it.

    `example_inputs` are arguments of a call, in a tuple or list; a single tensor may stand by itself. Only shapes and
    dtypes of their tensors matter; other arguments are constants. `path` ends in .so: `libdigits.so` comes with
    `digits.h`, and its functions are `digits_new`, `digits_run` and so on. `level` (none, sse4.2, avx2, avx512, neon)
    compiles for every machine that has these vector instructions, instead of for this very machine.

    `dynamic` names axes of arguments, as `jit` takes them, that have one length n in every call, and another in another
    call: `dynamic={"x": 0}`. The library then takes n, from 1 to `largest`, as the first argument of a run.

    >>> ek.export_native(model, (ek.zeros((1, 784)),), "build/libdigits.so")
    """
    from eshkol.backends.cpu.backend import PROGRAMS_ALONE
    from eshkol.backends.cpu.export import write_library

    library, name = _named(path)
    chosen = None if level is None else _level(level)
    args = tuple(example_inputs) if isinstance(example_inputs, tuple | list) else (example_inputs,)
    inner = plain(function)
    if dynamic is not None:
        return _export_sized(inner, args, library, name, chosen, dynamic, largest)
    model = model_of(inner, args, name, PROGRAMS_ALONE)
    return Exported(library, write_library(model, library, name, chosen, [_told(inner, model)]), name)


def plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """What is traced of a function: what is inside of `jit`, and of a model its call, which captures the parameters.

    (`ek.jit` of a model takes them as inputs.)
    """
    inner = getattr(function, "function", function) if hasattr(type(function), "traced") else function
    if not hasattr(type(inner), "__jit__"):
        return inner

    @functools.wraps(getattr(inner, "forward", inner), updated=())
    def called(*args: Any, **given: Any) -> Any:
        return inner(*args, **given)

    called.__name__ = type(inner).__name__
    return called


def model_of(
    function: Callable[..., Any], args: tuple[Any, ...], name: str, machine: MachineDescription, what: str = "library"
) -> ExportedModel:
    """The function, for arguments like these, as what is written for a machine: steps, constants, inputs, outputs."""
    return _model(*planned_for(function, args, name, machine, what))


def planned_for(
    function: Callable[..., Any], args: tuple[Any, ...], name: str, machine: MachineDescription, what: str
) -> tuple[Plan, list[Any], list[str]]:
    """The plan of the function, the values of what it captures, which are its last parameters, and operands' names."""
    with no_grad():  # what is written does not learn
        found = jit(function).traced(*args)
        arrays = _arrays(found)
    plan = found.compiled.plan(machine)
    _refuse_host_steps(plan, what)
    return plan, arrays, _operand_names(function, args, found.tree, name)


def _operand_names(function: Callable[..., Any], args: Sequence[Any], tree: pytree.Tree, name: str) -> list[str]:
    own = [x for x in _named_leaves(function, args) if is_input(x[1])]
    return _identifiers([*(n for n, _ in own), *_paths(tree, "out")], {f"{name}_model", "n"})


def _told(function: Callable[..., Any], model: ExportedModel) -> str:
    """What the function takes and gives."""
    from eshkol.backends.cpu.export_text import extent_text

    given, made = (
        ", ".join(f"{o.dtype}[{', '.join(map(extent_text, o.shape))}]" for o in some)
        for some in (model.inputs, model.outputs)
    )
    return f"The function {getattr(function, '__name__', type(function).__name__)}: ({given}) -> ({made})."


# --- any length of an axis --------------------------------------------------------------------------


def _export_sized(
    function: Callable[..., Any], args: tuple[Any, ...], library: Path, name: str, level: Level | None, dynamic: Any,
    largest: int,
) -> Exported:  # fmt: skip
    from eshkol.backends.cpu.export import Exporter, write_sized_library

    backend = Exporter(level)
    traced = jit(function, dynamic=dynamic)
    with no_grad():
        make, axes, _ = traced.for_all_sizes(args, backend)
        classes, singles = _classes(make, largest)
        if not classes:
            raise TensorError(f"{traced.name} cannot be compiled for every length: {singles.get(largest)}", span=here(),
                              hint="export it without dynamic=, for the lengths that are needed")  # fmt: skip
        found = [_sized_export(one, function, args, name, largest) for one in classes]
        found += [_for_one_size(n, function, args, axes, name) for n in singles]
    about = [_told(function, found[0].model), f"Sizes n that it takes: 1 to {largest}."]
    return Exported(library, write_sized_library(found, library, name, backend, about), name)


def _classes(make: Callable[[int], Template], largest: int) -> tuple[list[Class], dict[int, str]]:
    """What is compiled for sizes, such that all up to the largest are served; and sizes that need a plan of their own.

    Of these it is said why.
    """
    found: list[Class] = []
    singles: dict[int, str] = {}
    for size in range(1, largest + 1):
        if any(one.serves(size) for one in found):
            continue
        try:
            if size < LEAST:
                raise Refused("one of a kind is computed in other ways")
            found.append(Class(make, size, (), (), []))
        except EXPECTED as error:
            singles[size] = str(error)
        if len(found) + len(singles) > MOST_CLASSES:
            why = singles.get(size, "they are computed in many ways")
            raise TensorError(
                f"sizes up to {size} need {MOST_CLASSES} plans already: {why}", span=here(),
                hint="export it for fewer sizes (largest=), or without dynamic=",
            )  # fmt: skip
    missing = [n for n in range(1, largest + 1) if n not in singles and not any(one.serves(n) for one in found)]
    return found, singles | dict.fromkeys(missing, "it is computed in a way of its own")


def _sized_export(
    one: Class, function: Callable[..., Any], args: Sequence[Any], name: str, largest: int
) -> SizedExport:
    from eshkol.backends.cpu.export import SizedExport

    plan, template = one.plan(()), one.template
    execute.compute(template.needs)
    arrays = [execute.ready(host_array(node)) for node in template.needs]
    names = _operand_names(function, args, template.tree, name)
    assert plan.whole is not None
    written: Any = plan.whole.runner
    model = _model_of(plan, written.steps, arrays, names, len(plan.numbers))
    first = len(plan.plan.params) - len(plan.numbers)
    numbers = [
        (plan.where[p][0], x, dtype.name)
        for p, (x, dtype) in zip(plan.plan.params[first:], plan.numbers, strict=True)
    ]  # fmt: skip
    return SizedExport(
        model, one.ends[0], min(one.ends[1], largest), written, template.conditions, [p.size for p in plan.plan.places],
        plan.tenancies, plan.starts, len(plan.before), numbers,
    )  # fmt: skip


def _for_one_size(
    size: int, function: Callable[..., Any], args: tuple[Any, ...], axes: frozenset[tuple[int, int]], name: str
) -> SizedExport:
    """The function for one size, as it is exported without others."""
    from eshkol.backends.cpu.backend import PROGRAMS_ALONE
    from eshkol.backends.cpu.export import SizedExport

    leaves, tree = pytree.flatten(args)
    number = -1
    for k, leaf in enumerate(leaves):
        if is_input(leaf):
            number += 1
            shape = tuple([size if (number, axis) in axes else n for axis, n in enumerate(np.shape(leaf))])
            leaves[k] = np.zeros(shape, as_node(leaf).dtype.numpy)
    alone = tree.build(iter(leaves))
    return SizedExport(model_of(function, alone, name, PROGRAMS_ALONE), size, size)


def _named(path: str | os.PathLike[str]) -> tuple[Path, str]:
    """The library's path, and what its functions are called."""
    library = Path(path).absolute()
    name = library.stem.removeprefix("lib")
    if library.suffix != ".so":
        raise TensorError(f"a library is a file whose name ends in .so, not '{library.name}'", span=here())
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or name.lower().startswith("eshkol"):
        hint = "letters, digits and _ may stand in it, a letter first; eshkol is taken"
        raise TensorError(f"'{name}' cannot begin the names of C functions", span=here(), hint=hint)
    if not library.parent.is_dir():
        raise TensorError(f"there is no folder '{library.parent}' to write the library to", span=here())
    return library, name


def _level(name: str) -> Level:
    from eshkol.backends.cpu.simd import Level

    names = {level.value: level for level in Level}
    if name not in names:
        raise BackendUnavailable(f"there is no level '{name}'", hint=f"levels: {', '.join(names)}")
    return names[name]


def _arrays(found: Traced) -> list[Any]:
    """The values of captured tensors."""
    execute.compute(found.needs)
    return [execute.ready(host_array(node)) for node in found.needs]


def _refuse_host_steps(plan: Plan, what: str = "library") -> None:
    for step in walk(plan.steps):
        if isinstance(step, OnHost):
            raise TensorError(
                f"{described(step.node)} is computed by the host, with NumPy or SciPy; a {what} cannot do that",
                span=where_asked(step.node), hint="compute it before, and pass the result as an input",
            )  # fmt: skip


# --- the plan as a model ----------------------------------------------------------------------------


class _Recorder:
    """Stands in for a machine, and keeps the steps it is given; nothing is run."""

    steps: Sequence[SequenceStep] = ()

    def sequence(self, steps: Sequence[SequenceStep], places: int) -> Runner:
        self.steps = steps
        return self

    def native(self, op: str, attrs: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> None:
        """A library has programs alone."""

    def run(self, addresses: list[int]) -> None:
        raise AssertionError("a recorder runs nothing")


def _model(plan: Plan, arrays: Sequence[Any], names: Sequence[str]) -> ExportedModel:
    recorder = _Recorder()
    native = NativePlan(plan, recorder)
    return _model_of(native, recorder.steps, arrays, names)


def _model_of(
    native: NativePlan, steps: Sequence[SequenceStep], arrays: Sequence[Any], names: Sequence[str], numbers: int = 0
) -> ExportedModel:
    """The model of a plan. Of its last parameters some are arrays, and the very last numbers that follow from sizes."""
    from eshkol.backends.cpu.export_text import ExportedModel

    plan = native.plan
    nodes: Sequence[Node | None] = [n for part in native.parts if isinstance(part, Joined) for n in part.nodes]
    count = len(plan.params) - len(arrays) - numbers
    constants = [
        *zip((native.where[p][0] for p in plan.params[count : count + len(arrays)]), arrays, strict=True),
        *zip((native.where[p][0] for p, _ in plan.constants), native.constants, strict=True),
    ]
    inputs = [
        _operand(name, plan.places[p], native.where[p][0])
        for name, p in zip(names, plan.params[:count], strict=False)
    ]  # fmt: skip
    outputs: list[ExportedOperand] = []
    free = {native.where[p][0] for p in plan.given}  # places that no output has taken yet
    for name, (p, aval) in zip(names[count:], plan.results, strict=True):
        place = native.where[p][0]
        outputs.append(_operand(name, aval, place if place in free else None, place))
        free.discard(place)
    homes = [(native.where[p][0], offset) for p, offset in native.homes.items()]

    def told(step: int, error: EshkolError) -> str:
        return explained(nodes[step], error)

    return ExportedModel(steps, native.count, native.arena.size, homes, constants, inputs, outputs, told)


def explained(node: Node | None, error: EshkolError) -> str:
    """What is told where a step that computes a node fails: the op and the user's line."""
    told = error if node is None else failure(node, error)
    where = "" if told.span is None else f" ({Path(told.span.file).name}, line {told.span.line})"
    return f"{told.message.removesuffix(' (lane 0)')}{where}"  # which lane it is, only a run could say


def operand_of(name: str, aval: Any) -> dict[str, Any]:
    """What callers are told of an input or output."""
    from eshkol.backends.cpu.export_text import TYPES

    dtype = aval.dtype.name.rstrip("_")
    if dtype not in TYPES:
        message = f"'{name}' is {aval.dtype}, which has no type in C or JavaScript"
        raise TensorError(message, hint="take real and imaginary parts")
    return {"name": name, "dtype": dtype, "shape": tuple(aval.shape)}


def _operand(name: str, aval: Any, place: int | None, source: int = 0) -> ExportedOperand:
    from eshkol.backends.cpu.export_text import ExportedOperand

    size = prod(aval.shape) * aval.dtype.size
    return ExportedOperand(**operand_of(name, aval), size=size, place=place, source=source, alignment=aval.dtype.size)


# --- names ------------------------------------------------------------------------------------------


def _named_leaves(function: Callable[..., Any], args: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """The leaves of the arguments, each with the name it has for the function."""
    try:
        params = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        params = []
    names = [p.name for p in params if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    for number, arg in enumerate(args):
        leaves, tree = pytree.flatten(arg)
        base = names[number] if number < len(names) else f"input{number}"
        yield from zip(_paths(tree, base), leaves, strict=True)


def _paths(tree: pytree.Tree, base: str) -> Iterator[str]:
    """Names of the leaves of a structure: keys, fields and places after the name of the whole."""
    if tree.kind is None:
        yield base
        return
    keys: Sequence[Any] = getattr(tree.kind, "_fields", range(len(tree.children)))
    if isinstance(tree.data, tuple) and len(tree.data) == len(tree.children):
        keys = tree.data
    for key, child in zip(keys, tree.children, strict=True):
        joint = "" if isinstance(key, int) and not base[-1].isdigit() else "_"
        yield from _paths(child, f"{base}{joint}{key}")


def _identifiers(names: Sequence[str], taken: set[str]) -> list[str]:
    """Names as C can have them, all different, also in capitals."""
    used = {*map(str.upper, RESERVED), *map(str.upper, taken)}
    found = []
    for name in names:
        base = re.sub(r"[^A-Za-z0-9_]", "_", name).lstrip("_") or "x"
        base = f"x{base}" if base[0].isdigit() else base
        made, number = base, 2
        while made.upper() in used:
            made, number = f"{base}_{number}", number + 1
        used.add(made.upper())
        found.append(made)
    return found
