"""Modules that `export_wasm` writes, run by node and by wasmtime, against what the CPU backend gives."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eshkol as ek
from effort import FULL
from eshkol.backends.wasm import export
from eshkol.cli.main import main
from eshkol.errors import BackendError, TensorError
from eshkol.llvm.wasm_objects import imports
from eshkol.web.site import eshkol_js
from exported import in_wasmtime
from exported_models import (
    assert_near,
    convolutions,
    doubles,
    gpt_step,
    loops,
    many_functions,
    perceptron,
    small_gpt,
    weights,
)

ROOT = Path(__file__).parents[2]
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="there is no node: apt-get install nodejs")

# Loads a module, runs it on each of some sets of inputs, and prints outputs or what is wrong.
DRIVER = """
import { readFile } from "node:fs/promises";
import { load } from "./eshkol.js";
const kinds = { float32: Float32Array, float64: Float64Array, int64: BigInt64Array, int32: Int32Array };
const given = JSON.parse(await readFile("given.json"));
const model = await load("model.wasm");
const found = [];
for (const inputs of given.runs) {
  for (const [name, { dtype, values, plain }] of Object.entries(inputs)) {
    if (plain !== undefined) inputs[name] = plain;
    else inputs[name] = new kinds[dtype](dtype === "int64" ? values.map(BigInt) : values);
  }
  try {
    const outputs = Object.entries(model.run(inputs));
    found.push(Object.fromEntries(outputs.map(([name, array]) => [name, [...array].map(String)])));
  } catch (error) {
    found.push(`${error.name}: ${error.message}`);
  }
}
console.log(JSON.stringify(found));
"""


@pytest.fixture(autouse=True)
def on_the_cpu():
    with ek.use_backend("cpu"), ek.no_grad():
        yield


def in_node(exported: Any, runs: list[dict[str, Any]]) -> list[Any]:
    """What node prints for each run: outputs by name, or what is wrong."""
    folder = exported.module.parent
    (folder / "eshkol.js").write_text(eshkol_js(), "utf-8")
    (folder / "package.json").write_text('{"type": "module"}', "utf-8")
    (folder / "main.js").write_text(DRIVER, "utf-8")
    exported.module.rename(folder / "model.wasm")
    given = [{name: _for_node(value) for name, value in run.items()} for run in runs]
    (folder / "given.json").write_text(json.dumps({"runs": given}), "utf-8")
    done = subprocess.run([NODE, "main.js"], cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout)
    return found


def _for_node(value: Any) -> dict[str, Any]:
    if not isinstance(value, np.ndarray):
        return {"plain": value}
    return {"dtype": value.dtype.name, "values": value.reshape(-1).tolist()}


MODELS = (perceptron, convolutions, small_gpt, gpt_step, loops, many_functions, doubles)
QUICK = (convolutions, gpt_step, loops, many_functions)


def written(model: Any, folder: Path) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """A model that was written, with inputs and the outputs that they should give."""
    ek.seed(0)
    function, args = model()
    found = ek.export_wasm(function, args, folder / "some.wasm")
    leaves = [np.asarray(x.numpy()) for x in ek.tree_leaves(args)]
    wanted = [np.asarray(x.numpy()) for x in ek.tree_leaves(ek.jit(function)(*args))]
    inputs = {o["name"]: leaf for o, leaf in zip(found.description["inputs"], leaves, strict=True)}
    return found, inputs, {o["name"]: x for o, x in zip(found.description["outputs"], wanted, strict=True)}


@needs_node
@pytest.mark.parametrize("model", MODELS if FULL else QUICK, ids=lambda m: m.__name__)
def test_node_gives_what_the_cpu_gives(model, tmp_path):
    found, inputs, wanted = written(model, tmp_path)
    assert not [*imports(found.module.read_bytes())]
    once, again = in_node(found, [inputs, inputs])
    assert once == again
    assert [*once] == [*wanted]
    for name, value in wanted.items():
        assert_near(np.array([float(x) for x in once[name]]).astype(value.dtype), value.reshape(-1), name)


@pytest.mark.parametrize("model", MODELS if FULL else (perceptron, small_gpt, doubles), ids=lambda m: m.__name__)
def test_wasmtime_gives_what_the_cpu_gives(model, tmp_path):
    found, inputs, wanted = written(model, tmp_path)
    outputs = in_wasmtime(found, [*inputs.values()])
    assert [*outputs] == [*wanted]
    for name, value in wanted.items():
        assert outputs[name].shape == value.shape
        assert_near(outputs[name], value, name)


@needs_node
def test_javascript_refuses_what_does_not_fit(tmp_path):
    table = ek.tensor(np.arange(12, dtype=np.float32).reshape(4, 3))
    args = ek.tensor([1, 2]), ek.zeros((3,))
    found = ek.export_wasm(lambda ids, bias: table[ids] + bias, args, tmp_path / "some.wasm")
    ids, bias = np.array([1, 3]), np.ones(3, np.float32)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"ids": ids}, 'input "bias" (float32[3]) is missing'),
        ({"ids": ids, "bias": bias, "more": 1}, 'there is no input "more"; inputs: ids, bias'),
        ({"ids": ids, "bias": np.ones(4, np.float32)}, "3 elements in all; it was given 4"),
        ({"ids": ids, "bias": np.ones(3)}, "give a Float32Array or an array of numbers, not Float64Array"),
        ({"ids": [1, 2.5], "bias": bias}, "element 1 is 2.5"),
        ({"ids": [1, "2"], "bias": bias}, "element 1 is 2"),
        ({"ids": [1, 4], "bias": bias}, "an index is out of range for an axis of extent 4"),
        ({"ids": "12", "bias": bias}, "not string"),
    ]
    *refused, fine = in_node(found, [*(case for case, _ in cases), {"ids": [1, 3], "bias": [0.5, 0.5, True]}])
    for said, (_, wanted) in zip(refused, cases, strict=True):
        assert isinstance(said, str), said
        assert said.startswith("ModelError: ")
        assert wanted in said
    assert fine == {"out": ["3.5", "4.5", "6", "9.5", "10.5", "12"]}


@needs_node
def test_javascript_refuses_what_is_no_model(tmp_path):
    (tmp_path / "eshkol.mjs").write_text(eshkol_js(), "utf-8")
    (tmp_path / "text.wasm").write_text("no module", "utf-8")
    (tmp_path / "empty.wasm").write_bytes(b"\0asm\x01\0\0\0")
    script = """
      import { load } from "./eshkol.mjs";
      for (const source of ["missing.wasm", "text.wasm", "empty.wasm", 3])
        await load(source).then(() => console.log("loaded"), (error) => console.log(`${error.name}: ${error.message}`));
    """
    (tmp_path / "main.mjs").write_text(script, "utf-8")
    done = subprocess.run([NODE, "main.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    said = done.stdout.splitlines()
    assert [line.split(":")[0] for line in said] == ["ModelError"] * 4
    for line, wanted in zip(
        said, ("cannot be loaded", "no module", "not exported by Eshkol", "not number"), strict=True
    ):
        assert wanted in line


def test_what_cannot_be_exported_is_refused_by_name(tmp_path):
    with pytest.raises(TensorError, match=r"sort.*is computed by the host.*a module cannot do that"):
        ek.export_wasm(lambda x: ek.sort(x), (ek.zeros((50,)),), tmp_path / "some.wasm")
    assert not [*tmp_path.iterdir()]


def test_paths_that_make_no_sense(tmp_path):
    with pytest.raises(TensorError, match=r"ends in \.wasm"):
        ek.export_wasm(lambda x: x + 1, (ek.zeros((2,)),), tmp_path / "some.so")
    with pytest.raises(TensorError, match="there is no folder"):
        ek.export_wasm(lambda x: x + 1, (ek.zeros((2,)),), tmp_path / "none" / "some.wasm")


def test_too_many_constants_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(export, "CONSTANTS_LIMIT", 1000)
    table = weights(20, 20)
    with pytest.raises(BackendError, match="1600 bytes of constants are too many"):
        ek.export_wasm(lambda x: x @ table, (ek.zeros((1, 20)),), tmp_path / "some.wasm")
    assert not [*tmp_path.iterdir()]


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    (tmp_path / "some.wasm").write_bytes(b"before")

    def full(self: Path, target: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(BackendError, match="No space left on device"):
        ek.export_wasm(lambda x: x + 1, (ek.zeros((2,)),), tmp_path / "some.wasm")
    assert [p.name for p in tmp_path.iterdir()] == ["some.wasm"]
    assert (tmp_path / "some.wasm").read_bytes() == b"before"


@needs_node
def test_the_page_is_true(tmp_path, monkeypatch, capsys):
    page = (ROOT / "docs" / "web.md").read_text("utf-8")
    python = "".join(re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL))
    program, shown = (
        re.findall(rf"^```{kind}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[0] for kind in ("js", "text")
    )
    monkeypatch.chdir(tmp_path)
    with ek.enable_grad():
        exec(compile(python, "docs/web.md", "exec"), {"__name__": "page"})
    (tmp_path / "eshkol.js").write_text(eshkol_js(), "utf-8")
    (tmp_path / "package.json").write_text('{"type": "module"}', "utf-8")
    (tmp_path / "main.js").write_text(program, "utf-8")
    done = subprocess.run([NODE, "main.js"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", shown)
    for name, kind in (("digits", "digits"), ("gpt", "text")):
        assert main(["export", "web", f"{name}.eskpt", "-o", name]) == 0
        assert f"the page '{kind}'" in capsys.readouterr().out
