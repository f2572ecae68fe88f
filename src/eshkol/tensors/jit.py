"""`jit`: a function traced once for each structure, shapes and dtypes of its arguments, and then run as a plan.

The function runs on placeholders; what it builds becomes a function of the graph, which is compiled as a whole. Tensors
and arrays among the arguments are its inputs; everything else (Python numbers too) belongs to the key, so another value
traces again. What the function reads beside its arguments (`captures.py`) belongs to the key too, and tensors among it
are inputs; if one was computed with outside of what depends on the arguments, a change of it traces again. Within
`grad`, `vmap` or on tensors that require grad the traced graph is used instead of the plan, so transformations go
through.

Another batch size is no other native code: programs are told how long leading axes are, as far as they are computed in
the same way (one example, or far more or fewer of them, may be computed in another). Nor is it another trace, once two
lengths were seen: then the function is traced for all of them (`dynamic.py`).

Arguments that are donated may be overwritten by the results: a training step then updates its parameters in place. A
tensor that was donated cannot be used any more.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
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
from eshkol.ops.structural import BUFFER, CONST, PLACEHOLDER
from eshkol.runtime import front
from eshkol.schedule.cache import COMPILER
from eshkol.schedule.check.switch import CHECKS
from eshkol.schedule.pipeline import Compiled
from eshkol.schedule.plan.steps import Plan
from eshkol.schedule.rewrite.simplify import simplify_function
from eshkol.schedule.run import execute
from eshkol.schedule.run.memory import exclusive
from eshkol.support import flags
from eshkol.support.collector import without_collector
from eshkol.support.extents import LEAST
from eshkol.tensors import devices, pytree
from eshkol.tensors.again import OTHER, Again, calling_again, suits
from eshkol.tensors.captures import Captures, exactly
from eshkol.tensors.changes import changed_while_tracing
from eshkol.tensors.dynamic import Families, Sized, Template
from eshkol.tensors.dynamic import Traced as SizedTrace
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
    sized: Sized | None = None  # of a trace for all lengths, for one of them: what is run instead of `compiled`

    @cached_property
    def dtypes(self) -> list[DType]:
        """Of the results."""
        return [r.dtype for r in self.function.results]


class jit(front.CallBase):
    """The function, traced once and then run without Python; a decorator or a function.

    `donate` names positional arguments, by their places, whose memory the results may take (`donate_argnums` is the
    same). With `floats`, Python floats among the arguments are inputs too, and numbers inside (`scalars.Scalar`): a
    learning rate that changes does not trace again. Errors call it by `name`, or by the function's. What is neither a
    tensor nor an array is part of the program anyway; `static_argnums` and `static_argnames` say that an argument must
    be so, and refuse tensors there.

    A function that was traced for two lengths of an axis (of several inputs at once, if they have the same) is traced
    for all lengths then; `dynamic=True` has that done after one length, for the axes that vary, `dynamic={"x": 0}` for
    these axes of arguments alone, by name or place, and `dynamic=False` never.

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
        donate_argnums: int | Sequence[int] = (), dynamic: bool | Mapping[str | int, int | Sequence[int]] | None = None,
    ) -> None:  # fmt: skip
        self.function, self.floats = function, floats
        self._name = name or getattr(function, "__name__", type(function).__name__)
        self.donate = (*_several(donate), *_several(donate_argnums))
        self._static = (*_several(static_argnums), *_several(static_argnames))
        self._traces: OrderedDict[Any, Traced] = OrderedDict()
        self._last: Any = None
        self._recent: tuple[Any, Traced | None] = (None, None)  # the key and the trace of the last call
        self._again: Any = None  # the last call, if one like it is quickly told: in C, or what is asked here
        self._captures: Captures | None = None
        if dynamic is not None and not isinstance(dynamic, bool | Mapping):
            raise TensorError(
                f"{self.name}: dynamic is True, False or a mapping of arguments to axes, not {dynamic!r}", span=here(),
                hint='for axis 0 of an argument x: dynamic={"x": 0}',
            )  # fmt: skip
        self._dynamic = dynamic
        self._families = Families(dynamic, self.name) if dynamic is not False else None
        self._own: set[str] = set()  # names of what it captures that it changes itself
        update_wrapper(self, function, updated=())  # the attributes are ours, also where `function` is like this

    @property
    def name(self) -> str:
        """What errors call it."""
        return f"jit of {self._name}"

    def _called(self, args: tuple[Any, ...], given: dict[str, Any]) -> Any:
        """The result of a call that C did not find to be like the one before."""
        again = self._again
        if type(again) is Again and not given:
            result = again.call(args)
            if result is not OTHER:
                return result
        if self._static:
            self._check_static(args, given)
        found, inputs, inside = self._found(args, given)
        if inside:
            return found.tree.build(wrapped(found.function(*inputs, *found.captured)))
        result = self._run(found, inputs)
        self._again = self._like(found, args, given, inputs)
        return result

    def _like(self, found: Traced, args: tuple[Any, ...], given: dict[str, Any], inputs: list[Node]) -> Any:
        """How calls like this one are made from now on; None where more has to be looked at than is looked at there."""
        if given or found.donated or self._static or execute.looks():
            return None
        leaves: list[Any] = []
        outline = pytree.outline(args, leaves)
        if not pytree.is_plain(outline) or not suits(leaves, inputs):
            return None
        if len(leaves) == len(args) and not any(outline[1:]):  # each is a tensor
            outline = None
        captures, (key, last) = self._captures, self._recent
        assert captures is not None
        held = captures.held
        # Another thread may have called it meanwhile, and found other values in what it captures.
        if last is not found or (captures.any and held.state is not key[1]) or held.nodes != [*found.watched]:
            return None
        watched = captures.watched(held)
        if watched is None:
            return None
        compiled = found.sized or found.compiled
        return calling_again(compiled, inputs, key[2], found.tree, found.dtypes, watched, found.needs, outline)

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
        return self._found(args, given, each=True)[0]

    def plan(self, *args: Any, **given: Any) -> Plan:
        """What a call with such arguments runs; `print(schedule.show.shown_plan(...))` shows it."""
        found, inputs, _ = self._found(args, given, each=True)
        device = next((x.device for x in inputs if x.device is not None), None)
        return found.compiled.plan(execute.Machines.named(device).description)

    def _found(
        self, args: tuple[Any, ...], given: dict[str, Any], each: bool = False
    ) -> tuple[Traced, list[Node], bool]:
        """The trace for some arguments, its inputs, and whether any of them depends on a transformation at work.

        With `each`, it is one of these shapes alone.
        """
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
        inside = scoped and any(s.open for x in inputs for s in x.scopes)
        if self._families is not None:
            each = each or inside or execute.looks_at_values()
            if found is None:
                found = None if each else self._for_all_sizes(key, args, given, leaves, inputs, nodes)
            elif found.sized is not None and (each or not found.sized.suits):
                found = None
        if found is not None and nodes and nodes != found.watched:
            found = self._with_captured(key, found, nodes, scoped)
        if found is not None and CHECKS.on and found.sized is not None and found.sized.comes_again():
            found.sized.beside = self._trace(key, args, given, leaves, inputs, keep=False)
        # Threads that come here at once each trace it, and one of the traces stays.
        return found or self._trace(key, args, given, leaves, inputs), inputs, inside

    def _for_all_sizes(
        self, key: Any, args: tuple[Any, ...], given: dict[str, Any], leaves: Sequence[Any], inputs: Sequence[Node],
        watched: Sequence[Node],
    ) -> Traced | None:  # fmt: skip
        """The trace of a function that was seen with other lengths of an axis; None where it is traced for each."""
        families, machine = self._families, execute.Machines.named(key[2])
        assert families is not None
        if not hasattr(machine, "sized_sequence") or not machine.shares_host_memory:
            return None
        which = families.found(key)
        if which is None:
            with _TRACES:
                others = [*self._traces]
            which = families.noticed(key, others, self._may_vary(args, given), self._donated(args)) if others else None
        if which is None:
            return None
        family, size = which

        def maker() -> Callable[[int], Template]:
            """What traces it for a size; it is kept, so it holds no tensor of this call."""
            avals, like = [Aval(x.shape, x.dtype) for x in inputs], self._like_leaves(args, given, leaves)
            tracer = partial(self._sized_graph, key, like)
            return lambda hint: Template(tracer, avals, family.axes, hint, machine)

        sized = families.compiled(family, size, maker, watched)
        if sized is None:
            return None
        template = sized.template
        found = Traced(
            template.function, template.needs, template.tree, template.compiled, template.needs, family.donated,
            sized.watched, sized,
        )  # fmt: skip
        self._keep(key, found)
        return found

    def for_all_sizes(
        self, args: tuple[Any, ...], machine: Any
    ) -> tuple[Callable[[int], Template], frozenset[tuple[int, int]], int]:
        """What traces it for a size of the axes that are dynamic; these axes, by inputs; and their length now."""
        leaves = pytree.leaves(args)
        inputs = [as_node(x) for x in leaves if is_input(x)]
        allowed = self._may_vary(args, {})
        axes = frozenset((k, d) for k, x in enumerate(inputs) for d in range(len(x.shape)) if allowed(k, d))
        lengths = {inputs[k].shape[d] for k, d in axes}
        if len(lengths) != 1 or min(lengths) < LEAST:
            raise TensorError(
                f"{self.name}: dynamic axes have one length in a call, of {LEAST} or more; here "
                f"{' and '.join(map(str, sorted(lengths))) or 'there are none'}", span=here(),
            )  # fmt: skip
        avals, like = [Aval(x.shape, x.dtype) for x in inputs], self._like_leaves(args, {}, leaves)
        tracer = partial(self._sized_graph, (None, None, devices.current_name()), like)
        return lambda hint: Template(tracer, avals, axes, hint, machine), axes, lengths.pop()

    def _sized_graph(self, key: Any, like: tuple[Any, Any], avals: Sequence[Aval]) -> SizedTrace:
        function, captured, tree = self._graph(key, like, avals)
        return SizedTrace(function, captured, tree, _simple)

    def _may_vary(self, args: Sequence[Any], given: dict[str, Any]) -> Callable[[int, int], bool]:
        """Whether an axis of an input, by its number, may have any length."""
        spec = self._dynamic
        if not isinstance(spec, Mapping):
            return lambda number, axis: True
        names = list(signature(self.function).parameters)
        allowed: set[tuple[int, int]] = set()
        start = 0
        for k, (name, arg) in enumerate([*zip([*names, *[None] * len(args)], args, strict=False), *given.items()]):
            shapes = [np.shape(x) for x in pytree.leaves(arg) if is_input(x) or self._is_number(x)]
            axes = _several(spec.get(k, spec.get(name, ()) if name is not None else ()))
            allowed |= {(start + j, a % len(s)) for j, s in enumerate(shapes) for a in axes if s and a < len(s)}
            start += len(shapes)
        return lambda number, axis: (number, axis) in allowed

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
            if found.sized is not None:
                results = self._run_sized(found.sized, arrays, machine, donated)
            else:
                results = execute.run_compiled(found.compiled, arrays, machine, donated)
        except EshkolError as error:
            if error.donated_kept:
                for k in donated:
                    inputs[k].data = arrays[k]
            raise
        return found.tree.build(map(Tensor, buffers(results, found.dtypes)))

    def _run_sized(self, sized: Sized, arrays: Sequence[Any], machine: Any, donated: Sequence[int]) -> list[Any]:
        """The results of a plan for a size; where checks are on, now and then compared with those of a plain trace."""
        beside, sized.beside = sized.beside, None
        if beside is None:
            return sized.run(arrays, machine, donated=donated)
        from eshkol.schedule.check import validation

        copies = [np.array(a) for a in arrays[: len(arrays) - len(sized.template.needs)]]
        copies += execute.values_of(beside.needs)[1] if beside.needs else []
        results = sized.run(arrays, machine, donated=donated)
        validation.kept("plans for all sizes", beside.compiled.results, results, beside.compiled.params, copies)
        return results

    def _trace(
        self, key: Any, args: Sequence[Any], given: dict[str, Any], leaves: Sequence[Any], inputs: Sequence[Node],
        keep: bool = True,
    ) -> Traced:  # fmt: skip
        if keep:
            self._explain(key, leaves)
        like = self._like_leaves(args, given, leaves)
        function, captured, tree = self._graph(key, like, [Aval(x.shape, x.dtype) for x in inputs])
        simple, needs = _simple(function, captured)
        compiled = Compiled(simple.results, simple.params)
        if not keep:
            return Traced(function, captured, tree, compiled, needs, self._donated(args))
        state, nodes = self._captured_now()
        found = Traced(function, captured, tree, compiled, needs, self._donated(args), nodes)
        self._keep((key[0], state, *key[2:]), found)
        return found

    def _like_leaves(
        self, args: Sequence[Any], given: dict[str, Any], leaves: Sequence[Any]
    ) -> tuple[pytree.Tree, list[tuple[type[Tensor] | None, Any]]]:
        """How arguments are put together, and of what: inputs by their type alone, everything else as it is."""
        kinds: list[tuple[type[Tensor] | None, Any]] = [
            (Scalar, None) if self._is_number(x) else (Tensor, None) if is_input(x) else (None, x) for x in leaves
        ]
        return pytree.flatten((args, given))[1], kinds

    def _graph(
        self, key: Any, like: tuple[Any, Any], avals: Sequence[Aval]
    ) -> tuple[Function, list[Node], pytree.Tree]:
        """The function run on placeholders: its graph, what it captured, and how its results are put together."""
        trees: list[pytree.Tree] = []
        tree, kinds = like

        def run(*params: Node) -> list[Node]:
            feed = iter(params)
            inside = [x if kind is None else kind(next(feed)) for kind, x in kinds]
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
        return function, captured, trees[0]

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


def _simple(function: Function, captured: Sequence[Node]) -> tuple[Function, Sequence[Node]]:
    """The function, and what it takes of what it captured: constants (ek.zeros, masks of positions) are no inputs."""
    if not captured:
        return function, captured
    with COMPILER, without_collector():
        return simplify_function(*_with_own_constants(function, captured))


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
    known = (x.op is CONST or (x.data is None and x.op not in (BUFFER, PLACEHOLDER)) for x in order)
    return len(order) <= MOST_STEPS and all(known)  # a number may have been looked at, and is one all the same


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
