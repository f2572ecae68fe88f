"""`model.summary(...)`: what a model is made of, layer by layer, found by tracing it once without computing.

Comes in: a module and the shapes (or examples) of its inputs. Goes out: `Summary`, rows with shapes, parameters, FLOPs
and memory, that prints as a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from eshkol.errors import ShapeError
from eshkol.nn.functional import functional_call
from eshkol.nn.module_like import ModuleLike
from eshkol.tensors import api as ek
from eshkol.tensors.holding import bare
from eshkol.tensors.value import Tensor
from eshkol.tensors.work import operations

Shape = tuple[int, ...]


@dataclass
class SummaryRow:
    """One module: where it stands and what a call of the model takes there, its parts included."""

    name: str  # its path, "" for the model itself
    kind: str  # its class
    depth: int
    parameters: int  # its own and its parts'
    trainable: int
    parameter_bytes: int
    is_leaf: bool
    input_shapes: list[Shape] = field(default_factory=list)
    output_shapes: list[Shape] = field(default_factory=list)  # of its last call
    calls: int = 0
    flops: int = 0
    output_bytes: int = 0  # of what it gives; of one with parts, what all of them without parts give


@dataclass
class Summary:
    """What a model is made of; `str()` is a table. Bytes of outputs are those that the layers without parts give."""

    rows: list[SummaryRow]
    traced: bool  # whether inputs were given: without them there are no shapes
    parameters: int
    trainable: int
    parameter_bytes: int
    buffer_bytes: int
    input_bytes: int
    output_bytes: int

    @property
    def flops(self) -> int:
        """Floating-point operations of one call."""
        return self.rows[0].flops

    @property
    def total_bytes(self) -> int:
        """Parameters, buffers, inputs and what the layers give, if all of it is kept (as for `backward`)."""
        return self.parameter_bytes + self.buffer_bytes + self.input_bytes + self.output_bytes

    def row(self, name: str) -> SummaryRow:
        """The row of the module of that name."""
        return next(r for r in self.rows if r.name == name)

    def __rich__(self) -> Any:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table(title=self.rows[0].kind, show_edge=False, pad_edge=False)
        table.add_column("layer", no_wrap=True)
        for title in ("output shape", "parameters", "FLOPs", "memory") if self.traced else ("parameters", "memory"):
            table.add_column(title, justify="right", no_wrap=True)
        for r in self.rows:
            name = r.name.rpartition(".")[2]
            often = f" ×{r.calls}" if r.calls > 1 else ""
            cells = [Text("  " * r.depth + (f"{name}: {r.kind}" if name else r.kind) + often)]
            if self.traced:
                cells.append(Text(" ".join(map(_shown, r.output_shapes)) or "—"))
            cells.append(Text(f"{r.parameters:,}" if r.parameters else "—"))
            if self.traced:
                cells.append(Text(scaled(r.flops) if r.flops else "—"))
            cells.append(Text(sized(r.parameter_bytes + r.output_bytes)))
            table.add_row(*cells)
        fixed = self.parameters - self.trainable
        said = [
            f"parameters: {self.parameters:,} ({self.trainable:,} trainable, {fixed:,} fixed), "
            f"{sized(self.parameter_bytes)}; buffers {sized(self.buffer_bytes)}"
        ]
        if self.traced:
            said.append(
                f"FLOPs: {scaled(self.flops)}; inputs {sized(self.input_bytes)}, outputs of layers "
                f"{sized(self.output_bytes)}, in all {sized(self.total_bytes)}"
            )
        return Group(table, Text("\n".join(said)))

    def __str__(self) -> str:
        from rich.console import Console

        width = 60 + max(2 * r.depth + len(r.name) + len(r.kind) + 20 * len(r.output_shapes) for r in self.rows)
        console = Console(width=max(width, 100), color_system=None)
        with console.capture() as captured:
            console.print(self)
        return "\n".join(line.rstrip() for line in captured.get().rstrip().splitlines())

    __repr__ = __str__


def scaled(number: float, units: Sequence[str] = ("", " k", " M", " G", " T", " P"), step: float = 1000.0) -> str:
    """A number with three digits and a unit."""
    place = 0
    while number >= step and place < len(units) - 1:
        number, place = number / step, place + 1
    return f"{number:.3g}{units[place]}" if number < 1000 else f"{number:.0f}{units[place]}"


def sized(count: int) -> str:
    """Bytes, with a unit."""
    return scaled(count, (" B", " KiB", " MiB", " GiB", " TiB"), 1024.0)


def _shown(shape: Shape) -> str:
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def summarized(model: ModuleLike, inputs: Sequence[Any], dtype: Any = None) -> Summary:
    """The summary of a model for inputs that are whole shapes, lists of them, or tensors."""
    if len(inputs) == 1 and isinstance(inputs[0], list):
        inputs = inputs[0]
    dtypes = list(dtype) if isinstance(dtype, list | tuple) else [dtype] * len(inputs)
    if len(dtypes) != len(inputs):
        raise ShapeError(f"summary was given {len(inputs)} inputs and {len(dtypes)} dtypes", span=ek.here())
    examples = [_example(given, of) for given, of in zip(inputs, dtypes, strict=True)]
    rows = {id(module): _row(path, module) for path, module in model.named_modules()}
    if examples:
        _traced(model, examples, rows)
    parameters = list(model.parameters())
    found = list(rows.values())
    for row in found:
        if not row.is_leaf:
            prefix = f"{row.name}." if row.name else ""
            row.output_bytes = sum(r.output_bytes for r in found if r.is_leaf and r.name.startswith(prefix))
    return Summary(
        found, bool(examples), sum(p.size for p in parameters), sum(p.size for p in parameters if p.requires_grad),
        _bytes(parameters), _bytes(model.buffers()), _bytes(ek.tree_leaves(examples)),
        sum(r.output_bytes for r in found if r.is_leaf),
    )  # fmt: skip


def _example(given: Any, dtype: Any) -> Any:
    if isinstance(given, tuple) and all(isinstance(n, int) and not isinstance(n, bool) for n in given):
        if any(n < 0 for n in given):
            raise ShapeError(
                f"summary takes whole shapes, the batch too, as (1, 3, 32, 32), not {given}", span=ek.here()
            )
        return ek.zeros(given, dtype=dtype)
    if isinstance(given, int):
        raise ShapeError(
            f"summary takes a shape, as ({given},), or a tensor, not {given}", span=ek.here(),
            hint="the shape is a tuple and has the batch: model.summary((1, 784))",
        )  # fmt: skip
    return ek.asarray(given)


def _row(path: str, module: ModuleLike) -> SummaryRow:
    parameters = list(module.parameters())
    count, trained = sum(p.size for p in parameters), sum(p.size for p in parameters if p.requires_grad)
    depth = path.count(".") + 1 if path else 0
    leaf = next(iter(module.children()), None) is None
    return SummaryRow(path, type(module).__name__, depth, count, trained, _bytes(parameters), leaf)


def _bytes(tensors: Any) -> int:
    return sum(t.size * t.dtype.size for t in tensors)


def _traced(model: ModuleLike, examples: list[Any], rows: dict[int, SummaryRow]) -> None:
    """Fill the rows in by calling the model on placeholders, in evaluation mode."""

    def note(module: ModuleLike, args: Any, result: Any) -> None:
        row = rows[id(module)]
        given, made = ([x for x in ek.tree_leaves(v) if isinstance(x, Tensor)] for v in (args, result))
        row.calls += 1
        row.input_shapes, row.output_shapes = [x.shape for x in given], [x.shape for x in made]
        row.flops += operations(made, given)
        row.output_bytes += _bytes(made)

    def run(state: Any, args: Any) -> Any:
        return functional_call(model, state, *args)

    state = {name: bare(t) for name, t in (*model.named_parameters(), *model.named_buffers())}
    modules = list(model.modules())
    modes = [module.training for module in modules]
    hooks = [module.register_forward_hook(note) for module in modules]
    try:
        model.eval()
        ek.jit(run).traced(state, examples)
    finally:
        for hook in hooks:
            hook.remove()
        for module, mode in zip(modules, modes, strict=True):
            object.__setattr__(module, "training", mode)
