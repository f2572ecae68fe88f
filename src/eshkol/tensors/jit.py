"""`jit`: a function traced once for each structure, shapes and dtypes of its arguments, and then run as a plan.

The function runs on placeholders; what it builds becomes a function of the graph, which is compiled as a whole. Tensors
and arrays among the arguments are its inputs; everything else (Python numbers too) belongs to the key, so another value
traces again. What the function reads beside its arguments (`captures.py`) belongs to the key too, and tensors among it
are inputs; if one was computed with outside of what depends on the arguments, a change of it traces again. Within
`grad`, `vmap` or on tensors that require grad the traced graph is used instead of the plan, so transformations go
through.

Another batch size is another trace, but no other native code: programs are told how long leading axes are, as far as
they are computed in the same way (one example, or far more or fewer of them, may be computed in another).

Arguments that are donated may be overwritten by the results: a training step then updates its parameters in place. A
tensor that was donated cannot be used any more.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, update_wrapper
from inspect import signature
from typing import Any

import numpy as np

from eshkol.errors import EshkolError, TensorError, TraceError
from eshkol.graph.function import Function, trace
from eshkol.graph.node import Node, buffer, buffers, here, substitute, topological
from eshkol.ops.dtypes import DType, default_float, float64
from eshkol.ops.row import Aval
from eshkol.ops.structural import BUFFER, PLACEHOLDER
from eshkol.schedule.cache import COMPILER
from eshkol.schedule.pipeline import Compiled
from eshkol.schedule.plan.steps import Plan
from eshkol.schedule.rewrite.simplify import simplify_function
from eshkol.schedule.run import execute
from eshkol.schedule.run.memory import exclusive
from eshkol.support import flags
from eshkol.support.collector import without_collector
from eshkol.tensors import devices, pytree
from eshkol.tensors.captures import Captures, exactly
from eshkol.tensors.changes import changed_while_tracing
from eshkol.tensors.scalars import Scalar
from eshkol.tensors.tape import TAPE
from eshkol.tensors.transforms import results_of
from eshkol.tensors.value import INPUTS, Tensor, as_node, is_input, wrapped

KEPT = 64  # traces of one function
_NOTHING: tuple[tuple[Any, ...], list[Node]] = ((), [])
MOST_STEPS = 32  # of a constant that is computed in each call
_TRACES = threading.RLock()  # guards what functions keep of their traces; not held while one is traced


@dataclass(frozen=True)
class Traced:
    """One trace of a function."""

    function: Function
    captured: Sequence[Node]
    tree: pytree.Tree  # of the results
    compiled: Compiled
    needs: Sequence[Node]  # what it takes of the captured
    donated: tuple[int, ...]  # places of inputs whose memory may be taken
    watched: Sequence[Node] = ()  # of the tensors that it captured by name, when it was traced

    @cached_property
    def dtypes(self) -> list[DType]:
        """Of the results."""
        return [r.dtype for r in self.function.results]


class jit:
    """The function, traced once and then run without Python; a decorator or a function.

    `donate` names positional arguments, by their places, whose memory the results may take (`donate_argnums` is the
    same). With `floats`, Python floats among the arguments are inputs too, and numbers inside (`scalars.Scalar`): a
    learning rate that changes does not trace again. Errors call it by `name`, or by the function's. What is neither a
    tensor nor an array is part of the program anyway; `static_argnums` and `static_argnames` say that an argument must
    be so, and refuse tensors there.

    >>> @ek.jit
    ... def step(w, x, y): return w - 0.1 * ek.grad(loss)(w, x, y)
    >>> step = ek.jit(step, donate=0)
    """

    def __new__(cls, function: Callable[..., Any] | None = None, **how: Any) -> Any:
        """What a callable with state of its own (`__jit__`, as a model) makes of this, or a jit of a plain function.

        Without a function, a decorator: `@ek.jit(donate=0)`.
        """
        if function is None:
            return partial(cls, **how)
        own = getattr(type(function), "__jit__", None)
        return super().__new__(cls) if own is None else own(function, **how)

    def __init__(
        self, function: Callable[..., Any], *, donate: int | Sequence[int] = (), floats: bool = False,
        name: str | None = None, static_argnums: int | Sequence[int] = (), static_argnames: str | Sequence[str] = (),
        donate_argnums: int | Sequence[int] = (),
    ) -> None:  # fmt: skip
        self.function, self.floats = function, floats
        self._name = name or getattr(function, "__name__", type(function).__name__)
        self.donate = (*_several(donate), *_several(donate_argnums))
        self._static = (*_several(static_argnums), *_several(static_argnames))
        self._traces: OrderedDict[Any, Traced] = OrderedDict()
        self._last: Any = None
        self._recent: tuple[Any, Traced | None] = (None, None)  # the key and the trace of the last call
        self._captures: Captures | None = None
        self._own: set[str] = set()  # names of what it captures that it changes itself
        update_wrapper(self, function, updated=())  # the attributes are ours, also where `function` is like this

    @property
    def name(self) -> str:
        """What errors call it."""
        return f"jit of {self._name}"

    def __call__(self, *args: Any, **given: Any) -> Any:
        if self._static:
            self._check_static(args, given)
        found, inputs, scoped = self._found(args, given)
        if scoped and any(s.open for x in inputs for s in x.scopes):
            return found.tree.build(wrapped(found.function(*inputs, *found.captured)))
        return self._run(found, inputs)

    def _check_static(self, args: tuple[Any, ...], given: dict[str, Any]) -> None:
        """Refuse tensors and arrays where the program was said to be made for a value."""
        names = list(signature(self.function).parameters)
        places = {k if k >= 0 else k + len(args) for k in self._static if isinstance(k, int)}
        for name in self._static:
            places |= {names.index(name)} if isinstance(name, str) and name in names else set()
        static = [args[k] for k in places if k < len(args)] + [given[k] for k in self._static if k in given]
        if any(map(is_input, pytree.leaves(static))):
            raise TraceError(
                f"{self.name}: an argument that is static is a tensor or an array", span=here(),
                hint="a static argument is a number, text or another plain value; leave tensors out of static_argnums",
            )  # fmt: skip

    @property
    def _jitted(self) -> Callable[..., Any]:
        return self.function

    def traced(self, *args: Any, **given: Any) -> Traced:
        """The trace that a call with such arguments runs."""
        return self._found(args, given)[0]

    def plan(self, *args: Any, **given: Any) -> Plan:
        """What a call with such arguments runs; `print(schedule.show.shown_plan(...))` shows it."""
        found, inputs, _ = self._found(args, given)
        device = next((x.device for x in inputs if x.device is not None), None)
        return found.compiled.plan(execute.Machines.named(device).description)

    def _found(self, args: tuple[Any, ...], given: dict[str, Any]) -> tuple[Traced, list[Node], bool]:
        """The trace for some arguments, its inputs, and whether any of them depends on a transformation."""
        leaves: list[Any] = []
        outline = pytree.outline((args, given) if given else args, leaves)
        inputs: list[Node] = []
        signature: list[Any] = [outline]
        scoped = opaque = False
        device: str | None = None  # where the inputs are
        for x in leaves:
            kind: Any = None  # of a number: such an input is another than a tensor without axes
            if type(x) is Tensor and x._node.data is not None:  # nearly all are
                node = x._node
            elif type(x) is Scalar:
                node, kind = x._settled(), float
            elif type(x) is float and self.floats:
                node, kind = buffer(np.array(x), float64, loose=True), float
            elif isinstance(x, INPUTS):
                node = as_node(x)
            else:
                kind = type(x)
                signature += (kind, exactly(x) if kind is float or kind is complex else x)
                opaque = opaque or kind not in _PLAIN
                continue
            inputs.append(node)
            signature += (kind or node.shape, node.dtype)
            if node.scopes:
                scoped = True
            if node.device is not None:
                device = node.device
        captures = self._captures
        if captures is None:
            captures = self._captures = Captures(self.function)
        state, nodes = captures.now() if captures.any else _NOTHING
        if opaque:
            signature.append(captures.of_arguments(args, given))
        key = (tuple(signature), state, device or devices.current_name(), default_float())
        last, found = self._recent
        if key != last:  # it is the same as before nearly always, and need not be looked for
            with _TRACES:
                found = self._traces.get(key)
                if found is not None:
                    self._traces.move_to_end(key)
                    self._recent = key, found
        if found is not None and nodes and nodes != found.watched:
            found = self._with_captured(key, found, nodes, scoped)
        # Threads that come here at once each trace it, and one of the traces stays.
        return found or self._trace(key, args, given, leaves, inputs), inputs, scoped

    def _with_captured(self, key: Any, found: Traced, nodes: Sequence[Node], scoped: bool) -> Traced | None:
        """A trace with other values of tensors that it captured; None where they are no inputs of what was compiled."""
        new: dict[Node, Node] = {}
        for node, earlier in zip(nodes, found.watched, strict=True):
            if new.setdefault(earlier, node) is not node:
                return None  # two that were one value are two now
        changed = {earlier: node for earlier, node in new.items() if earlier is not node}
        if scoped or not all(earlier in found.needs and earlier in found.captured for earlier in changed):
            return None
        found = replace(
            found, needs=[changed.get(x, x) for x in found.needs], captured=[changed.get(x, x) for x in found.captured],
            watched=nodes,
        )  # fmt: skip
        self._keep(key, found)
        return found

    def _keep(self, key: Any, found: Traced) -> None:
        with _TRACES:
            self._traces[key] = found
            self._recent = key, found
            if len(self._traces) > KEPT:
                self._traces.popitem(last=False)

    def _run(self, found: Traced, inputs: list[Node]) -> Any:
        every = [*inputs, *found.needs]
        donated: Sequence[int] = ()
        if found.donated:
            execute.compute(every)
            donated = _may_be_taken(inputs, found.donated)
        machine, arrays = execute.values_of(every)
        for k in donated:
            inputs[k].data = None  # from now on it is the results'
        try:
            results = execute.run_compiled(found.compiled, arrays, machine, donated)
        except EshkolError as error:
            if error.donated_kept:
                for k in donated:
                    inputs[k].data = arrays[k]
            raise
        return found.tree.build(map(Tensor, buffers(results, found.dtypes)))

    def _trace(
        self, key: Any, args: Sequence[Any], given: dict[str, Any], leaves: Sequence[Any], inputs: Sequence[Node]
    ) -> Traced:
        self._explain(key, leaves)
        trees: list[pytree.Tree] = []
        _, tree = pytree.flatten((args, given))
        avals = [Aval(x.shape, x.dtype) for x in inputs]

        def run(*params: Node) -> list[Node]:
            feed = iter(params)
            inside = [
                Scalar(next(feed)) if self._is_number(x) else Tensor(next(feed)) if is_input(x) else x for x in leaves
            ]
            held = [(x, x._node) for x in inside if type(x) is Tensor]
            built, named = tree.build(iter(inside))
            results, out_tree = results_of(self.function, built, named)
            self._refuse_changed(held)
            trees.append(out_tree)
            return results

        with changed_while_tracing() as changed, without_collector(), devices.device(key[2]):
            function, captured = trace(run, avals, self.name)
        changed.refuse_what_left(function.scope, self.name)
        for node in captured:
            if TAPE in node.scopes:
                raise TraceError(
                    f"{self.name} captures a tensor that requires grad, whose later values it would not see",
                    span=here(), hint="pass it as an argument",
                )  # fmt: skip
        needs, simple = captured, function
        if captured:  # constants among them (ek.zeros, masks made of positions) need not be inputs
            with COMPILER, without_collector():
                simple, needs = simplify_function(*_with_own_constants(function, captured))
        compiled = Compiled(simple.results, simple.params)
        state, nodes = self._captured_now()
        found = Traced(function, captured, trees[0], compiled, needs, self._donated(args), nodes)
        self._keep((key[0], state, *key[2:]), found)
        return found

    def _refuse_changed(self, held: Sequence[tuple[Tensor, Node]]) -> None:
        """Refuse changes of arguments in place: they would not reach the tensors of the caller."""
        for number, (tensor, before) in enumerate(held):
            if tensor._node is not before:
                raise TraceError(
                    f"{self.name} changes tensor {number} of its arguments in place, which its caller would not see",
                    span=here(), hint="change a copy (x = x.clone()), or return the new value and assign it",
                )  # fmt: skip

    def _captured_now(self) -> tuple[tuple[Any, ...], list[Node]]:
        """What the function reads beside its arguments, after it ran; what it changed itself is not looked at again."""
        assert self._captures is not None
        before = self._captures
        self._own.update(before.changed() if before.any else ())
        captures = Captures(self.function, self._own)  # anew: what it calls may have become another function
        if captures.names != before.names:
            with _TRACES:
                self._captures = captures
                self._traces.clear()
                self._recent = None, None
        return self._captures.now() if self._captures.any else _NOTHING

    def _is_number(self, leaf: Any) -> bool:
        return type(leaf) is Scalar or (self.floats and type(leaf) is float)

    def _donated(self, args: Sequence[Any]) -> tuple[int, ...]:
        """The places of donated inputs among all inputs."""
        places: list[int] = []
        start = 0
        for k, arg in enumerate(args):
            count = sum(is_input(x) or self._is_number(x) for x in pytree.leaves(arg))
            if k in self.donate or k - len(args) in self.donate:
                places += range(start, start + count)
            start += count
        for k in self.donate:
            if not -len(args) <= k < len(args):
                raise TensorError(f"{self.name}: there is no argument {k} to donate among {len(args)}", span=here())
        return tuple(places)

    def _explain(self, key: Any, leaves: Sequence[Any]) -> None:
        """Say what changed since the last trace, if that is asked for."""
        before, self._last = self._last, key
        if not flags.is_on("ESHKOL_EXPLAIN"):
            return
        if before is None:
            why = "it is called for the first time"
        elif before[2] != key[2]:
            why = f"its arguments are on {key[2]}, and were on {before[2]}"
        elif before[3] != key[3]:
            why = f"floats without a dtype are {key[3]}, and were {before[3]}"
        elif before[0] == key[0]:
            pairs = zip(self._captures.names if self._captures else (), before[1], key[1], strict=False)
            changed = [name for name, old, new in pairs if old != new]
            why = f"{changed[0] if changed else 'a tensor'}, which it captures, changed (pass it if it changes often)"
        elif before[0][0] != key[0][0] or len(before[0]) != len(key[0]):
            why = f"the structure of the arguments changed from {_shown(before[0][0])} to {_shown(key[0][0])}"
        else:
            was, now = before[0], key[0]
            k = next(k for k in range(1, len(now), 2) if was[k : k + 2] != now[k : k + 2])
            (old, old_kind), (new, new_kind) = (*was[k : k + 2], None)[:2], (*now[k : k + 2], None)[:2]
            if k == len(now) - 1:
                why = "what it reads of an argument changed (pass a tensor if it changes often)"
            elif isinstance(old, tuple) and isinstance(new, tuple):
                number = sum(map(is_input, leaves[: k // 2]))
                why = f"tensor {number} changed from {old_kind}{list(old)} to {new_kind}{list(new)}"
            else:
                why = f"an argument changed from {old_kind!r} to {new_kind!r} (pass a tensor if it changes often)"
        print(f"{self.name} is traced: {why}", file=sys.stderr)


def _several(given: Any) -> tuple[Any, ...]:
    return (given,) if isinstance(given, int | str) else tuple(given)


def _with_own_constants(function: Function, captured: Sequence[Node]) -> tuple[Function, list[Node]]:
    """The function with what it captured that depends on no data computed inside."""
    given = len(function.params) - len(captured)
    pairs = list(zip(function.params[given:], captured, strict=True))
    inside = {param: node for param, node in pairs if _is_constant(node)}
    results = substitute(function.results, inside, function.scope)
    others = [(param, node) for param, node in pairs if param not in inside]
    params = (*function.params[:given], *(param for param, _ in others))
    return replace(function, params=params, results=tuple(results)), [node for _, node in others]


def _is_constant(node: Node) -> bool:
    """Whether a value is made of numbers and positions alone, by few steps."""
    order = topological([node], through=lambda x: x.inputs if x.data is None else ())
    return len(order) <= MOST_STEPS and all(x.data is None and x.op not in (BUFFER, PLACEHOLDER) for x in order)


def _shown(outline: Any) -> str:
    return str(pytree.tree_of(outline))


_PLAIN = {bool, int, float, complex, str, bytes, type(None)}


def _may_be_taken(inputs: Sequence[Node], donated: Sequence[int]) -> list[int]:
    """The inputs, of those that are donated, whose memory nothing else sees."""
    found = [k for k in donated if not (node := inputs[k]).inputs and exclusive(node)]
    if len(set(map(id, inputs))) < len(inputs):  # one that is given twice is not the only one
        often = Counter(map(id, inputs))
        found = [k for k in found if often[id(inputs[k])] == 1]
    return found
