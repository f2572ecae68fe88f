"""Discrete Fourier transforms of any length up to 2²⁰, of many signals at a time.

Signals of a short length are taken as columns of a matrix and transformed in one step. A longer length n = n1·n2 of
small factors is a matrix of n1 rows: transform its columns, turn each element by its twiddle factor, transpose,
transform the columns again. Other lengths go by Bluestein: the transform as a convolution, whose transforms have a
power of two as their length. Twiddle factors are computed once for all signals, or as they are needed for a single one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

from eshkol.atlas.isa import Instruction
from eshkol.atlas.types import Type
from eshkol.backends.cpu.kernels.macro import Lowering, Macro, Phase
from eshkol.backends.cpu.macros.fourier import PIECE, Columns, Complex, FourierKernel, FourierPlan, Style
from eshkol.backends.cpu.macros.kit import Kernel, Value, macro_of
from eshkol.llvm.targets import Target

Fetch = Callable[[Value, int], Complex]  # elements from an index on, so many at once
Store = Callable[[Value, Complex], None]


def _each_column(k: FourierKernel, width: Value, first: Value, body: Callable[[Value, int], None]) -> None:
    """body(column of the task, lanes) for the task's columns that the matrix has: in vectors, if it has all."""
    columns, lanes = k.style.columns, k.style.lanes
    inside = first + columns <= width
    with k.when(inside):
        for start in range(0, columns, lanes):
            body(k.const(Type.I64, start), lanes)
    with k.when(k.negated(inside)), k.loop(0, width - first, plain=True) as c:
        body(c, 1)


def _twiddles(k: FourierKernel) -> None:
    """What the elements of the transposed matrix are turned by, for transforms of several signals."""
    target, padded, lanes = k.twiddles(), k.padded[0], k.style.lanes
    with k.tasks() as column, k.loop(0, padded, lanes, plain=True) as row:
        for plane, part in zip(target, k.twiddle(column, row), strict=True):
            plane.put(column * padded + row, part)


def _first_step(k: FourierKernel, source: Callable[[Value], Fetch], *, tabled: bool) -> None:
    """Columns of the matrix transformed, turned (by what a table says, or is computed) and stored as rows."""
    (n1, n2), padded, width, lanes = k.sides, k.padded[0], k.style.columns, k.style.lanes
    blocks = k.padded[1] // width
    with k.tasks() as task:
        batch, first = task // blocks, task % blocks * width
        fetch, columns, transposed, table = source(batch), Columns(k, 0), k.matrix(batch), k.twiddles()
        planes = columns.planes(columns.source.value)
        with k.loop(0, n1, plain=True) as row:

            def gather(c: Value, lanes: int, row: Value = row) -> None:
                for plane, part in zip(planes, fetch(row * n2 + first + c, lanes), strict=True):
                    plane.put(row * width + c, part)

            _each_column(k, n2, first, gather)
        columns.transform()
        with k.loop(0, n1, lanes, plain=True) as row:
            for c in range(0, width, lanes):
                rows = [columns.load((row + r) * width + c) for r in range(lanes)]
                parts = [_transposed(k, [value[part] for value in rows]) for part in (0, 1)]
                for r in range(lanes):
                    column = first + (c + r)
                    place = column * padded + row
                    turn = (table[0].vector(place, lanes), table[1].vector(place, lanes)) if tabled else None
                    turned = k.times((parts[0][r], parts[1][r]), turn or k.twiddle(column, row))
                    for part in (0, 1):
                        transposed[part].put(place, turned[part])


def _second_step(k: FourierKernel, sink: Callable[[Value], Store]) -> None:
    """Columns of the transposed matrix transformed and stored."""
    (n1, n2), padded, width, lanes = k.sides, k.padded[0], k.style.columns, k.style.lanes
    blocks = padded // width
    with k.tasks() as task:
        batch, first = task // blocks, task % blocks * width
        store, columns, transposed = sink(batch), Columns(k, 1), k.matrix(batch)
        planes = columns.planes(columns.source.value)
        with k.loop(0, n2, plain=True) as row:
            for c in range(0, width, lanes):
                for plane, part in zip(planes, transposed, strict=True):
                    plane.put(row * width + c, part.vector(row * padded + first + c, lanes))
        columns.transform()
        results = columns.planes(columns.source.value)
        with k.loop(0, n2, plain=True) as row:

            def scatter(c: Value, lanes: int, row: Value = row) -> None:
                re, im = (plane.vector(row * width + c, lanes) for plane in results)
                store(row * n1 + first + c, (re, im))

            _each_column(k, n1, first, scatter)


def _transposed(k: Kernel, rows: list[Value]) -> list[Value]:
    """A square of vectors, transposed by interleaving its halves again and again."""
    lanes = len(rows)
    low = [half for lane in range(lanes // 2) for half in (lane, lane + lanes)]
    high = [place + lanes // 2 for place in low]
    for _ in range(lanes.bit_length() - 1):
        pairs = zip(rows[: lanes // 2], rows[lanes // 2 :], strict=True)
        rows = [k.shuffle(a, b, places) for a, b in pairs for places in (low, high)]
    return rows


# --- short signals as columns ---------------------------------------------------------------------


def _side_by_side(k: FourierKernel) -> None:
    """Signals that lie side by side, as columns: a task takes some of one batch."""
    width, n = k.style.columns, k.n
    x, y = k.operand(1, k.style.ty), k.operand(0, k.style.ty)
    blocks = (k.inner + (width - 1)) // width
    with k.tasks() as task:
        batch, first = task // blocks, task % blocks * width
        start, columns = batch * n * k.inner + first, Columns(k, 0)
        planes = columns.planes(columns.source.value)
        with k.loop(0, n, plain=True) as row:

            def gather(c: Value, lanes: int, row: Value = row) -> None:
                for plane, part in zip(planes, k.interleaved(x, start + row * k.inner + c, lanes), strict=True):
                    plane.put(row * width + c, part)

            _each_column(k, k.inner, first, gather)
        columns.transform()
        results = columns.planes(columns.source.value)
        with k.loop(0, n, plain=True) as row:

            def scatter(c: Value, lanes: int, row: Value = row) -> None:
                re, im = (plane.vector(row * width + c, lanes) for plane in results)
                k.put_interleaved(y, start + row * k.inner + c, k.scaled((re, im)))

            _each_column(k, k.inner, first, scatter)


def _one_by_one(k: FourierKernel) -> None:
    """Signals that lie one after the other (or nearly so), as columns: squares of elements are transposed."""
    width, lanes, n = k.style.columns, k.style.lanes, k.n
    x, y = k.operand(1, k.style.ty), k.operand(0, k.style.ty)
    with k.tasks() as task:
        first, columns = task * width, Columns(k, 0)
        count = k.minimum(k.signals - first, k.const(Type.I64, width))
        square = k.both(count.compare("eq", width), k.inner.compare("eq", 1))
        whole = k.select(square, n - n % lanes, k.const(Type.I64, 0))  # rows that go in squares
        planes = columns.planes(columns.source.value)
        with k.loop(0, whole, lanes, plain=True) as row:
            for c in range(0, width, lanes):
                signals = [k.interleaved(x, (first + (c + s)) * n + row, lanes) for s in range(lanes)]
                for number, plane in enumerate(planes):
                    for r, value in enumerate(_transposed(k, [signal[number] for signal in signals])):
                        plane.put((row + r) * width + c, value)
        with k.loop(0, count, plain=True) as column:
            start = k.first_of(first + column)
            with k.loop(whole, n, plain=True) as row:
                for plane, part in zip(planes, k.interleaved(x, start + row * k.inner, 1), strict=True):
                    plane.put(row * width + column, part)
        columns.transform()
        results = columns.planes(columns.source.value)
        with k.loop(0, whole, lanes, plain=True) as row:
            for c in range(0, width, lanes):
                parts = [
                    _transposed(k, [plane.vector((row + r) * width + c, lanes) for r in range(lanes)])
                    for plane in results
                ]
                for s in range(lanes):
                    k.put_interleaved(y, (first + (c + s)) * n + row, k.scaled((parts[0][s], parts[1][s])))
        with k.loop(0, count, plain=True) as column:
            start = k.first_of(first + column)
            with k.loop(whole, n, plain=True) as row:
                re, im = (plane[row * width + column] for plane in results)
                k.put_interleaved(y, start + row * k.inner, k.scaled((re, im)))


# --- the instruction ------------------------------------------------------------------------------


def fft(i: Instruction, target: Target) -> Macro:
    plan = FourierPlan(i, Style(i.ty, target))
    return _short(plan) if plan.short else _direct(plan) if plan.direct else _bluestein(plan)


def _short(plan: FourierPlan) -> Macro:
    columns, apart = plan.style.columns, plan.i.inner < plan.style.lanes
    tables, step = kernels = _short_kernels(plan.style, apart)
    tasks = -(-plan.signals // columns) if apart else plan.i.batch * -(-plan.i.inner // columns)
    grain = max(1, PIECE // (columns * plan.length))
    return macro_of(kernels, [Phase(tables.function_name, 1), Phase(step.function_name, tasks, grain)], plan.words,
                    plan.scratch(0))  # fmt: skip


def _direct(plan: FourierPlan) -> Macro:
    tabled = plan.signals > 1
    tables, twiddles, first, second = kernels = _direct_kernels(plan.style, plan.i.inner > 1, tabled)
    phases = [Phase(tables.function_name, 1), *plan.steps(first, second, plan.signals)]
    if tabled:
        phases.insert(1, plan.turning(twiddles))
    return macro_of(kernels, phases, plan.words, plan.scratch(plan.signals))


def _bluestein(plan: FourierPlan) -> Macro:
    """jk = (j² + k² - (k - j)²) / 2: multiply by a chirp, convolve with its conjugate, multiply by it again."""
    tables, twiddles, chirp, turned, first, second, product, last = kernels = _bluestein_kernels(plan.style)
    pieces, signals = -(-plan.length // PIECE), plan.signals
    phases = [
        Phase(tables.function_name, 1), plan.turning(twiddles), Phase(chirp.function_name, pieces),
        Phase(turned.function_name, signals * pieces), *plan.steps(first, second, signals + 1),
        Phase(product.function_name, signals * pieces), *plan.steps(first, second, signals),
        Phase(last.function_name, signals * pieces),
    ]  # fmt: skip
    return macro_of(kernels, phases, plan.words, plan.scratch(signals + 1, signals=signals + 2))


@cache
def _short_kernels(style: Style, apart: bool) -> list[FourierKernel]:
    step = style.kernel("one_by_one" if apart else "side_by_side")
    (_one_by_one if apart else _side_by_side)(step)
    return [_tables(style), step]


def _tables(style: Style) -> FourierKernel:
    """The roots of unity of both sides."""
    k = style.kernel("tables")
    for side in (0, 1):
        table = k.table(side)
        with k.loop(0, k.sides[side], style.lanes, plain=True) as p:
            for plane, part in zip(table, k.root(k.counting(p, style.lanes), k.sides[side]), strict=True):
                plane.put(p, part)
    return k


@cache
def _direct_kernels(style: Style, strided: bool, tabled: bool) -> list[FourierKernel]:
    kind = ("_strided" if strided else "") + ("_tabled" if tabled else "")
    twiddles, first, second = (style.kernel(step) for step in ("twiddles", f"first{kind}", f"second{kind}"))
    _twiddles(twiddles)

    def source(signal: Value) -> Fetch:
        x = first.operand(1, style.ty).at(first.first_of(signal) * 2)
        if not strided:
            return lambda index, lanes: first.interleaved(x, index, lanes)

        def fetch(index: Value, lanes: int) -> Complex:
            singles = [first.interleaved(x, (index + lane) * first.inner, 1) for lane in range(lanes)]
            return (
                singles[0]
                if lanes == 1
                else (first.joined([s[0] for s in singles]), first.joined([s[1] for s in singles]))
            )

        return fetch

    def sink(signal: Value) -> Store:
        y = second.operand(0, style.ty).at(second.first_of(signal) * 2)

        def store(index: Value, value: Complex) -> None:
            re, im = second.scaled(value)
            if not strided:
                second.put_interleaved(y, index, (re, im))
                return
            for lane in range(re.lanes):
                single = (second.lane(re, lane), second.lane(im, lane)) if re.lanes > 1 else (re, im)
                second.put_interleaved(y, (index + lane) * second.inner, single)

        return store

    _first_step(first, source, tabled=tabled)
    _second_step(second, sink)
    return [_tables(style), twiddles, first, second]


@cache
def _bluestein_kernels(style: Style) -> list[FourierKernel]:
    steps = ("twiddles", "chirp", "turned", "inner_first", "inner_second", "product", "last")
    twiddles, chirp, turned, first, second, product, last = kernels = [style.kernel(step) for step in steps]
    _twiddles(twiddles)
    _chirp(chirp)
    _turned(turned)
    _first_step(first, lambda signal: _planes_fetch(first, signal), tabled=True)
    _second_step(second, lambda signal: _planes_store(second, signal))
    _product(product)
    _last(last)
    return [_tables(style), *kernels]


def _chirp(k: FourierKernel) -> None:
    """The chirp e^(± πi j² / n) as it is, and its conjugate at both ends with zeros between."""
    zero = k.const(k.ty, 0)
    ends, plain = k.signal(k.signals), k.signal(k.signals + 1)
    with k.pieces(k.length, PIECE) as (start, length), k.loop(start, start + length) as p:
        j = k.minimum(p, k.length - p)
        reached = j < k.n
        reduced = k.select(reached, j, k.const(Type.I64, 0))
        turn = k.root((reduced * reduced % (k.n * 2)).to(k.ty), k.n * 2)
        for plane, part in zip(ends, (turn[0], -turn[1]), strict=True):
            plane[p] = k.select(reached, part, zero)
        for plane, part in zip(plain, turn, strict=True):
            plane[p] = part


@contextmanager
def _parts_of_signals(k: FourierKernel) -> Iterator[tuple[Value, Value, Value]]:
    """Signal, start and end of what a task goes over element by element."""
    pieces = (k.length + (PIECE - 1)) // PIECE
    with k.tasks() as task:
        start = task % pieces * PIECE
        yield task // pieces, start, k.minimum(start + PIECE, k.length)


def _turned(k: FourierKernel) -> None:
    """The signals times the chirp; zeros after them."""
    chirp, zero = k.signal(k.signals + 1), k.const(k.ty, 0)
    with _parts_of_signals(k) as (signal, start, end):
        x, target = k.operand(1, k.style.ty).at(k.first_of(signal) * 2), k.signal(signal)
        filled = k.minimum(k.maximum(k.n, start), end)
        with k.loop(start, filled) as p:
            value = k.times(k.interleaved(x, p * k.inner, 1), (chirp[0][p], chirp[1][p]))
            target[0][p], target[1][p] = value
        with k.loop(filled, end) as p:
            target[0][p], target[1][p] = zero, zero


def _product(k: FourierKernel) -> None:
    """The product of both spectra, conjugated, so that the next transform is the conjugate of the inverse one."""
    second = k.signal(k.signals)
    with _parts_of_signals(k) as (signal, start, end):
        first = k.signal(signal)
        with k.parallel(start, end) as p:
            value = k.times((first[0][p], first[1][p]), (second[0][p], second[1][p]))
            first[0][p], first[1][p] = value[0], -value[1]


def _last(k: FourierKernel) -> None:
    chirp, scale = k.signal(k.signals + 1), k.scale / k.length.to(k.ty)
    with _parts_of_signals(k) as (signal, start, end):
        y, result = k.operand(0, k.style.ty).at(k.first_of(signal) * 2), k.signal(signal)
        with k.loop(start, k.minimum(end, k.n)) as p:
            value = k.times((result[0][p], -result[1][p]), (chirp[0][p], chirp[1][p]))
            k.put_interleaved(y, p * k.inner, (value[0] * scale, value[1] * scale))


def _planes_fetch(k: FourierKernel, batch: Value) -> Fetch:
    re, im = k.signal(batch)
    return lambda index, lanes: (re.vector(index, lanes), im.vector(index, lanes))


def _planes_store(k: FourierKernel, batch: Value) -> Store:
    planes = k.signal(batch)

    def store(index: Value, value: Complex) -> None:
        for plane, part in zip(planes, value, strict=True):
            plane.put(index, part)

    return store


LOWERINGS: dict[str, Lowering] = {"FFT": fft}
