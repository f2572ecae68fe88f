"""Random tensor programs as modules of WebAssembly: what wasmtime computes is what the oracle says."""

from __future__ import annotations

import pytest

import eshkol as ek
from effort import amount
from eshkol.errors import TensorError
from exported import in_wasmtime
from random_programs.choosing import Seeded
from random_programs.drawing import draw_program
from random_programs.ways import Run

pytest.importorskip("wasmtime", reason="wasmtime is not installed: pip install eshkol[wasm]")
COUNT = amount(300, 8)
REFUSED = ("is computed by the host", "has no type in C")  # what a module cannot have, said by name


def test_random_programs(tmp_path):
    ran, refused = 0, []
    with ek.use_backend("cpu"):
        for seed in range(COUNT):
            program, values = draw_program(Seeded(seed), 8)
            run = Run(program, values, Seeded(seed))
            last = len(values) - 1
            given = program.inputs()
            try:
                exported = ek.export_wasm(
                    lambda *xs, program=program: program.tensors(xs)[-1], tuple(map(ek.tensor, given)),
                    tmp_path / "some.wasm",
                )  # fmt: skip
            except TensorError as error:
                if not any(words in error.message for words in REFUSED):
                    raise
                refused.append(f"{seed}: {error.message}")
                continue
            ran += 1
            (found,) = in_wasmtime(exported, given).values()
            run.check(last, found, f"seed {seed} as WebAssembly")
    print(f"{ran} programs ran, {len(refused)} were refused", *refused, sep="\n  ")
    assert ran >= COUNT // 2
