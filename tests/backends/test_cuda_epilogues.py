"""Products with what follows them in one kernel: which are, what is found in their programs, and its PTX.

The numbers of whole kernels are compared on a GPU (`test_cuda_gpu.py`); here the code of one element is interpreted.
"""

from __future__ import annotations

import math
import shutil
import struct
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from interpreted_driver import installed

import eshkol as ek
from eshkol.atlas.operands import Condition
from eshkol.atlas.program import MEANWHILE
from eshkol.atlas.table import ROWS
from eshkol.atlas.types import Type
from eshkol.backends.cuda.warpgroups import following, instructions
from eshkol.backends.cuda.warpgroups.following import Elements, Epilogue, Reach, Value, Written, followed
from eshkol.backends.cuda.warpgroups.instructions import whole
from eshkol.backends.cuda.warpgroups.ptx import Kernel

PROCESSORS = 132


@pytest.fixture
def driver(monkeypatch):
    with installed(monkeypatch) as made:
        made.followed = []

        real = instructions._followed

        def noting(program, *how):
            made.followed.append(program)
            return real(program, *how)

        monkeypatch.setattr(instructions, "_followed", noting)
        yield made


def given(*shapes: tuple[int, ...], dtype: str = "bfloat16") -> list[ek.Tensor]:
    rng = np.random.default_rng(5)
    return [ek.tensor(rng.standard_normal(shape) * 0.3, dtype=dtype, device="cuda") for shape in shapes]


def compared(f, tensors: list[ek.Tensor], rtol: float = 2e-2) -> list[np.ndarray]:
    """What a function gives compiled, after it is compared with what it gives in float32 on the host."""
    found = ek.jit(f)(*tensors)
    with ek.device("cpu"):
        wanted = f(*(ek.tensor(x.astype("float32").numpy()) for x in tensors))
    found, wanted = ([*x] if isinstance(x, tuple) else [x] for x in (found, wanted))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one.astype("float32").numpy(), other.numpy(), rtol=rtol, atol=rtol)
    return found


# --- what is joined -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("f", "outs"), [
    (lambda x, w, b, r: x @ w + b, 1),
    (lambda x, w, b, r: ek.relu(x @ w + b), 1),
    (lambda x, w, b, r: ek.gelu(x @ w + b, approximate="tanh"), 1),
    (lambda x, w, b, r: ek.silu(x @ w + b), 1),
    (lambda x, w, b, r: ek.tanh(x @ w) - b, 1),
    (lambda x, w, b, r: ek.sigmoid(x @ w * 0.5 + b) + r, 1),
    (lambda x, w, b, r: ek.exp(-(x @ w)) / r, 1),
    (lambda x, w, b, r: ek.erf(x @ w) * r, 1),
    (lambda x, w, b, r: (x @ w + b).astype("float32") + r.astype("float32"), 1),
    (lambda x, w, b, r: (x @ w, ek.tanh(x @ w + b)), 2),
    (lambda x, w, b, r: ((x @ w + b).reshape(4, 8, 24), (x @ w + b) * r), 2),
], ids=["bias", "relu", "gelu", "silu", "tanh", "sigmoid", "exp", "erf", "float32", "both", "reshaped"])  # fmt: skip
def test_a_product_and_what_follows_are_one_launch(driver, f, outs):
    x, w, b, r = given((32, 16), (16, 24), (24,), (32, 24))
    r = (r.astype("float32") + 2).astype("bfloat16").realize()
    del driver.followed[:]
    compared(f, [x, w, b, r])
    assert len(driver.followed) == 1
    epilogue = followed(driver.followed[0])
    assert epilogue is not None
    assert len(epilogue.outs) == outs
    assert driver.followed[0].digest in driver.at_once


@pytest.mark.parametrize("f", [
    lambda x, w, b, r: x @ w + r[:, :1],  # a number for each row
    lambda x, w, b, r: (x @ w + r).sum(axis=1),
    lambda x, w, b, r: ek.where(x @ w > 0, r, 0),
    lambda x, w, b, r: (x @ w)[:, :8] + b[:8],
    lambda x, w, b, r: (x @ w).reshape(24, 32) + b[:8].reshape(8, 1, 1).expand(8, 3, 32).reshape(24, 32),
    lambda x, w, b, r: x.astype("float32") @ w.astype("float32") + b.astype("float32"),
], ids=["rows", "sums", "truths", "parts", "others", "float32"])  # fmt: skip
def test_others_are_left_apart(driver, f):
    x, w, b, r = given((32, 16), (16, 24), (24,), (32, 24))
    compared(f, [x, w, b, r])
    assert not driver.followed


def test_rows_that_are_no_whole_chunks_are_left_apart(driver):
    compared(lambda x, w, b: x @ w + b, given((32, 16), (16, 20), (20,)))
    assert not driver.followed


def test_a_batch_and_factors_that_are_copied_first(driver):
    compared(lambda x, w, b: ek.relu(x @ w + b), given((2, 3, 16, 20), (20, 24), (24,)))
    assert len(driver.followed) == 1


def test_what_sums_up_what_follows_reads_it_again(driver):
    x, w, r = given((64, 16), (16, 24), (64, 24))
    compared(lambda x, w, r: (lambda u: (u, u.astype("float32").sum(axis=0)))((x @ w) * r), [x, w, r], rtol=5e-2)
    assert len(driver.followed) == 1


def test_a_product_waits_for_what_follows_it_but_not_for_others(driver):
    """The first reader takes it along; one that comes before a group that could is in the way."""
    x, w, b, r = given((32, 16), (16, 24), (24,), (32, 24))
    compared(lambda x, w, b, r: (lambda u: (u.sum(axis=0), ek.relu(u + b)))(x @ w), [x, w, b, r], rtol=5e-2)
    for program in driver.followed:
        assert followed(program) is not None


def test_what_the_backward_pass_can_compute_again_is_not_written(driver):
    """Of gelu it reads what goes in, which it needs anyway."""
    with ek.device("cuda"):
        ek.seed(0)
        up, down = ek.nn.Linear(16, 32), ek.nn.Linear(32, 16)

        class Model(ek.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.up, self.down = up, down

            def forward(self, x):
                return self.down(ek.gelu(self.up(x), approximate="tanh"))

        model = Model()
        step = ek.train.Step(
            model, lambda out, y: ((out.astype("float32") - y) ** 2).mean(), ek.optim.SGD(model.parameters(), lr=0.1),
            precision="bfloat16",
        )  # fmt: skip
        rng = np.random.default_rng(0)
        x, y = (ek.tensor(rng.standard_normal((64, 16)).astype(np.float32)) for _ in range(2))
        losses = [float(step(x, y).loss) for _ in range(4)]
    assert losses == sorted(losses, reverse=True)
    forward, backward = (p for p in driver.followed if any(i.op.name == "SIGMOID" for i in p.instructions))
    epilogue = followed(forward)
    assert epilogue is not None
    assert [(out.ty, out.value == 0) for out in epilogue.outs] == [(Type.BF16, True), (Type.BF16, False)]
    epilogue = followed(backward)  # which is summed up by another launch, for the gradient of the bias
    assert epilogue is not None
    assert [out.ty for out in epilogue.outs] == [Type.BF16]
    assert sum(v.op == "read" and v.reach is Reach.ELEMENT for v in epilogue.values) == 1


# --- what is found in a program -------------------------------------------------------------------------


def test_a_buffer_that_is_needed_meanwhile_is_not_written(driver):
    x, w, b, r = given((32, 16), (16, 24), (24,), (32, 24))
    compared(lambda x, w, b, r: (x @ w + b).astype("float32") + r.astype("float32"), [x, w, b, r])
    (found,) = driver.followed
    assert found.metadata[MEANWHILE] == "product"
    epilogue = followed(found)
    assert epilogue is not None
    assert [out.ty for out in epilogue.outs] == [Type.F32]
    other = followed(replace(found, metadata={}))
    assert other is not None
    assert [(out.name, out.ty) for out in other.outs] == [("product", Type.BF16), ("out0", Type.F32)]


@pytest.mark.parametrize("change", ["REM", "MOV_IMM", "SETcc", "ADD"])
def test_other_programs_are_not_taken_for_one(driver, change):
    """One instruction is another: the column, how many lanes there are, which of them go on, what is computed."""
    compared(lambda x, w, b: x @ w + b, given((32, 16), (16, 24), (24,)))
    (found,) = driver.followed
    assert whole(found, PROCESSORS) is not None
    for k, i in enumerate(found.instructions):
        if i.op.name == change:
            operands = list(i.operands)
            if change in ("REM", "ADD"):
                other = ROWS[{"REM": "DIV", "ADD": "POW"}[change]](*operands)
            elif change == "SETcc":
                other = i.op(Condition.GT, *operands[1:])
            else:
                other = i.op(operands[0], replace(operands[1], value=operands[1].value + 8))
            assert followed(found.with_changes({k: (other,)})) is None
            return
    raise AssertionError(change)


# --- the code of an element -----------------------------------------------------------------------------

F = np.float32


def run(lines: list[str], registers: dict[str, object]) -> None:
    """A few of PTX's instructions, in float32."""

    def value(text: str) -> object:
        return (
            F(struct.unpack(">f", bytes.fromhex(text[2:]))[0]) if text.startswith("0f") else registers.get(text, text)
        )

    def bits(x: object) -> int:
        return int(np.frombuffer(np.array(x, F).tobytes(), np.uint32)[0]) if isinstance(x, F) else int(x)

    with np.errstate(all="ignore"):
        for line in lines:
            name, rest = line.strip().rstrip(";").split(" ", 1)
            into, *operands = rest.split(", ")
            x = [value(operand) for operand in operands]
            match name.split(".")[0]:
                case "add":
                    found = x[0] + x[1]
                case "sub":
                    found = x[0] - x[1]
                case "mul":
                    found = x[0] * x[1]
                case "div":
                    found = x[0] / x[1]
                case "neg":
                    found = -x[0]
                case "abs":
                    found = abs(x[0])
                case "min":
                    found = min(x)
                case "max":
                    found = max(x)
                case "fma":
                    found = F(float(x[0]) * float(x[1]) + float(x[2]))
                case "ex2":
                    found = F(2.0) ** x[0]
                case "rcp":
                    found = F(1) / x[0]
                case "copysign":
                    found = np.copysign(x[1], x[0])
                case "setp":
                    found = {"lt": x[0] < x[1], "gt": x[0] > x[1]}[name.split(".")[1]]
                case "selp":
                    found = x[0] if x[2] else x[1]
                case "shl":
                    found = (bits(x[0]) << int(x[1])) & 0xFFFFFFFF
                case "mov":
                    raw = bits(x[0])
                    found = np.frombuffer(np.uint32(raw).tobytes(), F)[0] if into.startswith("%f") else raw
                case _:
                    raise AssertionError(name)
            registers[into] = F(found) if into.startswith("%f") else found


def computed(op: str, *numbers: float) -> float:
    k = Kernel(128, 1, 64)
    names = k.registers(len(numbers))
    found = following._CODE[op](k, *names)
    registers: dict[str, object] = dict(zip(names, map(F, numbers), strict=True))
    run(k.lines, registers)
    return float(registers[found])


NUMBERS = [
    0.0,
    1e-6,
    -1e-4,
    0.03,
    -0.19,
    0.21,
    0.5,
    -0.92,
    0.93,
    1.5,
    -2.0,
    3.7,
    -6.0,
    12.0,
    -30.0,
    87.0,
    -100.0,
    200.0,
]


@pytest.mark.parametrize(("op", "meaning"), [
    ("EXP", lambda x: math.exp(min(x, 700))), ("SIGMOID", lambda x: 1 / (1 + math.exp(-x))), ("TANH", math.tanh),
    ("ERF", math.erf), ("RELU", lambda x: max(x, 0.0)), ("NEG", lambda x: -x),
])  # fmt: skip
def test_functions_of_one_number(op, meaning):
    for x in NUMBERS:
        wanted = meaning(float(F(x)))
        wanted = wanted if wanted < 3.4e38 else math.inf
        assert math.isclose(computed(op, x), wanted, rel_tol=4e-6, abs_tol=2e-38), x
    assert math.isnan(computed(op, math.nan))


@pytest.mark.parametrize(("op", "wanted"), [("ADD", 1.75), ("SUB", 1.25), ("MUL", 0.375), ("DIV", 6.0)])
def test_functions_of_two_numbers(op, wanted):
    assert computed(op, 1.5, 0.25) == wanted


def test_infinite_numbers_have_limits():
    assert (computed("SIGMOID", -math.inf), computed("SIGMOID", math.inf)) == (0.0, 1.0)
    assert (computed("TANH", -math.inf), computed("TANH", math.inf)) == (-1.0, 1.0)


def test_what_a_column_shares_is_computed_once():
    values = (
        Value("sum", (), Reach.ELEMENT), Value("read", (), Reach.COLUMN, "b"), Value("NEG", (1,), Reach.COLUMN),
        Value("ADD", (0, 2), Reach.ELEMENT), Value("constant", (), Reach.ALL, constant=0.5),
        Value("MUL", (3, 4), Reach.ELEMENT),
    )  # fmt: skip
    k = Kernel(128, 1, 64)
    elements = Elements(k, Epilogue(values, (Written("c", Type.F32, 0, 5), Written("d", Type.F32, 0, 0))), {})
    bias, *sums = k.registers(3)
    column = elements.column({1: bias})
    before = len(k.lines)
    results = [elements.at(column, total, {}) for total in sums]
    assert (before, len(k.lines)) == (1, 5)
    registers: dict[str, object] = {bias: F(1.0), sums[0]: F(3.0), sums[1]: F(5.0)}
    run(k.lines, registers)
    assert [[float(registers[r]) for r in result] for result in results] == [[1.0, 3.0], [2.0, 5.0]]


# --- kernels --------------------------------------------------------------------------------------------


def test_the_assembler_takes_epilogues(driver, tmp_path):
    """Those whose results are copied, those of which threads store float32, and those whose tiles are shared."""
    if shutil.which("ptxas") is None:
        pytest.skip("there is no ptxas")
    x, w, b, r = given((32, 16), (16, 24), (24,), (32, 24))
    ek.jit(lambda x, w, b, r: (x @ w + b * r, ek.tanh(x @ w + b).astype("float32")))(x, w, b, r)
    x, w, b = given((64, 4096), (4096, 64), (64,), dtype="float16")
    ek.jit(lambda x, w, b: ek.silu(x @ w + b))(x, w, b)
    texts = [whole(p, PROCESSORS).text for p in tuple(driver.followed)]
    assert len(texts) == 2
    assert ("st.global.v2.f32" in texts[0], "stmatrix" in texts[0]) == (True, True)
    assert ("st.global.b32" in texts[1], "mapa" in texts[1]) == (True, True)
    for number, text in enumerate(texts):
        source = tmp_path / f"{number}.ptx"
        source.write_text(text)
        said = subprocess.run(
            ["ptxas", "-arch=sm_90a", "-v", str(source), "-o", str(tmp_path / "out")], capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert said.returncode == 0, said.stderr
        assert "0 bytes spill stores" in said.stderr
        assert "serialized" not in said.stderr
