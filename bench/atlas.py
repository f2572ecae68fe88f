"""Atlas itself: forms, validation, optimization, the cache, and the reference interpreter beside NumPy."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from bench.harness import Result, race
from eshkol.atlas import jsonform
from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.expand import expand
from eshkol.atlas.flow import Flow
from eshkol.atlas.operands import Register
from eshkol.atlas.optimize import optimize
from eshkol.atlas.program import LaunchConfig, Program, disassemble
from eshkol.atlas.text import assemble
from eshkol.atlas.types import Type
from eshkol.atlas.validate import validate
from eshkol.backends.reference import ReferenceBackend
from eshkol.support.store import ProgramCache

TITLE = "Atlas: forms, passes and the reference interpreter"
LANE = Register(255)


def long_program(length: int = 400) -> Program:
    """A straight line of loads, arithmetic that folds and fuses, and stores."""
    b = ProgramBuilder("long")
    x, one = b.buffer("x", Type.F32), b.constant(Type.F32, 1.0)
    value, product = b.reg(), b.reg()
    b.ldg(Type.F32, value, x.at(LANE))
    for _ in range(length // 4):
        b.mul(product, value, value)
        b.add(value, product, one)
        b.mul(value, value, one)
        b.stg(Type.F32, x.at(LANE), value)
    return b.build()


def saxpy() -> Program:
    b = ProgramBuilder("saxpy")
    x, y = b.buffer("x", Type.F32), b.buffer("y", Type.F32)
    scale, left, right = b.reg(), b.reg(), b.reg()
    b.ldg(Type.F32, scale, b.scalar("a", Type.F32).address)
    b.ldg(Type.F32, left, x.at(LANE))
    b.ldg(Type.F32, right, y.at(LANE))
    b.fma(right, scale, left, right)
    b.stg(Type.F32, y.at(LANE), right)
    return b.build()


def fresh(program: Program) -> Program:
    """The same program as a new object, so that nothing remembered about it is used."""
    return Program(program.instructions, program.labels, program.params, program.entry, program.name)


def _attention() -> Program:
    b = ProgramBuilder("attention")
    places = [b.buffer(name, Type.F32).address for name in ("o", "q", "k", "v")]
    b.attention(Type.F32, *places, batch=2, heads=2, seq_len=8, head_dim=8)
    return b.build()


def run() -> list[Result]:
    program = long_program()
    text, data, count = disassemble(program), jsonform.dumps(program), len(program)
    forms = race(
        "reading and writing programs",
        {
            "assemble": lambda: assemble(text),
            "disassemble": lambda: disassemble(program),
            "from JSON": lambda: jsonform.loads(data),
            "to JSON": lambda: jsonform.dumps(program),
            "BLAKE3 digest": lambda: fresh(program).digest,
        },
        work=count, unit="instr",
    )  # fmt: skip
    passes = race(
        "passes",
        {
            "control flow": lambda: Flow.of(program),
            "validate": lambda: validate(fresh(program)),
            "optimize, all passes": lambda: optimize(fresh(program)),
        },
        work=count, unit="instr",
    )  # fmt: skip
    return [forms, passes, _expansion(), _cache(program), *(_interpreter(lanes) for lanes in (1_000, 1_000_000))]


def _expansion() -> Result:
    attention = _attention()
    length = len(expand(attention))
    return race("expanding Attention", {"expand": lambda: expand(fresh(attention))}, work=length, unit="instr")


def _cache(program: Program) -> Result:
    payload = jsonform.dumps(program).encode()
    with tempfile.TemporaryDirectory() as folder:
        warm, cold = ProgramCache(Path(folder)), ProgramCache(Path(folder), memory_bytes=0)
        parts = {"program": program.digest, "backend": "reference"}
        for cache in (warm, cold):
            cache.get_or_build(parts, lambda: payload)
        return race(
            "cache hit",
            {
                "from memory": lambda: warm.get_or_build(parts, lambda: payload),
                "from disk": lambda: cold.get_or_build(parts, lambda: payload),
            },
            work=1, unit="hits",
        )  # fmt: skip


def _interpreter(lanes: int) -> Result:
    """saxpy over arrays; NumPy's two passes over the same data are the floor of a NumPy interpreter."""
    backend, program = ReferenceBackend(), saxpy()
    x, y = (np.random.default_rng(k).standard_normal(lanes).astype(np.float32) for k in (1, 2))
    params = {"x": backend.array(x), "y": backend.array(y), "a": 0.5}
    launch = LaunchConfig.linear(lanes, block=250)
    contestants = {
        "NumPy": lambda: np.multiply(x, np.float32(0.5)) + y,
        "reference": lambda: backend.execute(program, launch, params),
    }
    return race(f"saxpy, {lanes:,} lanes", contestants, work=lanes, unit="elem")
