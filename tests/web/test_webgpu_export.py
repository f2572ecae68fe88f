"""Kernels that `export_webgpu` writes: what the file says, what is refused, and, in a browser, what they compute."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import browser as web
import eshkol as ek
from eshkol import nn
from eshkol.backends.webgpu.alone import BROWSER
from eshkol.errors import BackendUnavailable, TensorError
from eshkol.tensors.gpu_kernels import described, webgpu_kernels
from eshkol.web.site import HERE
from exported_models import assert_near, convolutions, gpt_step, many_functions, perceptron, small_gpt

rng = np.random.default_rng(5)
needs_browser = pytest.mark.skipif(web.MISSING is not None, reason=str(web.MISSING))
RUN = """
const { load } = await import("./eshkol.js");
const [name, runs] = JSON.parse(arguments[0]);
const model = await load(null, { gpu: name, machine: "webgpu" });
const found = [];
for (const inputs of runs)
  try {
    const outputs = await model.run(inputs);
    found.push(model.outputs.map(({ name }) => [...outputs[name]].map(Number)));
  } catch (error) {
    found.push(`${error.name}: ${error.message}`);
  }
return found;
""".replace("arguments[0]", "TEXT")


@pytest.fixture(autouse=True)
def on_the_cpu():
    with ek.use_backend("cpu"), ek.no_grad():
        yield


def normal(*shape: int) -> ek.Tensor:
    return ek.tensor(rng.normal(size=shape).astype(np.float32))


def sums() -> tuple[Any, tuple[Any, ...]]:
    """Of numbers above zero alone the sum of all is taken: of others it may be as near zero as their draw has it."""
    return (lambda x: (ek.abs(x).sum(), x.mean(0), ek.cumsum(x, 1), ek.argmax(x, 1), ek.softmax(x, 1))), (
        normal(33, 70),
    )


def products() -> tuple[Any, tuple[Any, ...]]:
    return (lambda x, y: (x @ y, ek.tanh(x).T @ x, x > 0)), (normal(70, 40), normal(40, 33))


def integers() -> tuple[Any, tuple[Any, ...]]:
    table = normal(9, 3)
    found = ek.tensor([[1, 8, -9]])
    return (lambda ids, n: (table[ids], n * 3 - 1, n.astype(ek.int64) << 40)), (
        found,
        ek.tensor(np.arange(5, dtype="u1")),
    )


MODELS = (perceptron, convolutions, small_gpt, gpt_step, many_functions, sums, products, integers)
QUICK = (convolutions, gpt_step, sums, integers)
# Last places: a browser's `fma` may round twice, and then sines of large numbers are not so near; long sums go in
# another order.
PLACES = {many_functions: 32, sums: 16}


@pytest.mark.parametrize("made", MODELS)
def test_a_file_says_all_that_a_browser_is_asked_for(made, tmp_path):
    function, args = made()
    exported = ek.export_webgpu(function, args, tmp_path / "some.webgpu")
    data = exported.kernels.read_bytes()
    head = described(data)
    assert head == json.loads(json.dumps(exported.description))
    sizes = head["buffers"]
    begin = data.index(b"\n") + 1
    assert begin % 4 == 0
    assert all(size % 4 == 0 and 0 < size <= BROWSER.largest for size in sizes)
    assert [begin + sum(c["bytes"] for c in head["constants"])] == [len(data)]
    own = [c["buffer"] for c in head["constants"]] + [o["buffer"] for o in head["inputs"]]
    assert len({*own}) == len(own), "constants and inputs are nothing else's"
    for step in head["steps"]:
        if "copy" in step:
            target, source, size = step["copy"]
            assert target != source
            assert size <= min(sizes[target], sizes[source])
            continue
        made_with = head["pipelines"][step["pipeline"]]
        text = head["kernels"][made_with["kernel"]]
        bound = [k for k in step["buffers"] if k >= 0]
        assert len({*bound}) == len(bound), "a browser takes no buffer twice"
        assert text.count("var<storage, read_write>") == len(step["buffers"])
        assert (made_with["shared"] is not None) == ("var<workgroup>" in text)
        fields = text.split("struct Given { ")[1].split(" }")[0].split(", ")
        assert len(fields) == len(step["words"])
        assert ("check" in step) == ("fn fault(" in text)
        assert made_with["lanes"] <= 256
        assert "f64" not in text
        if "workgroupBarrier" in text:
            assert "if (p0) {\n    return;" not in text, "lanes end before others wait"
    assert head["needs"] == max(len(s["buffers"]) for s in head["steps"] if "buffers" in s)


def test_values_share_buffers_where_their_lives_do_not_meet():
    def chain(x: Any) -> Any:
        for _ in range(6):
            x = ek.softmax(x @ x, -1)
        return x

    sizes = described(webgpu_kernels(chain, (normal(40, 40),), "chain"))["buffers"]
    assert 4 <= len(sizes) <= 6


def loop(x: Any) -> Any:
    return ek.while_loop(lambda c: c.sum() < 9, lambda c: c + 1, x)


REFUSED = {
    "float64": (lambda x: x + 1, np.zeros(3), BackendUnavailable, "no F64"),
    "a loop": (loop, np.zeros(3, "f"), BackendUnavailable, "a loop is not run on the GPU"),
    "complex numbers": (lambda x: ek.fft.fft(x), np.zeros(8, "f"), TensorError, "no type in C"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused(what, tmp_path):
    function, x, kind, words = REFUSED[what]
    with pytest.raises(kind, match=words):
        ek.export_webgpu(function, (ek.tensor(x),), tmp_path / "some.webgpu")
    assert not [*tmp_path.iterdir()]
    with pytest.raises(TensorError, match=r"ends in \.webgpu"):
        ek.export_webgpu(function, (ek.tensor(x),), tmp_path / "some.wasm")


# --- in a browser -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def page() -> Iterator[web.Browser]:
    with web.browser(gpu=True) as found:
        yield found


def in_browser(page: web.Browser, folder: Path, runs: list[dict[str, Any]]) -> Any:
    """What the file computes there, for inputs by their names, as lists of numbers; or what is wrong."""
    for name in ("eshkol.js", "gpu.js"):
        (folder / name).write_bytes((HERE / name).read_bytes())
    (folder / "index.html").write_text("<title>a page</title>", "utf-8")
    text = json.dumps(json.dumps(["some.webgpu", runs]))
    with web.served(folder) as address:
        page.open(f"{address}/index.html")
        return page.run(RUN.replace("TEXT", text))


@needs_browser
@pytest.mark.parametrize("made", [m if m in QUICK else pytest.param(m, marks=pytest.mark.slow) for m in MODELS])
def test_a_browser_computes_the_same(made, page, tmp_path):
    function, args = made()
    exported = ek.export_webgpu(function, args, tmp_path / "some.webgpu")
    leaves = [np.asarray(x) for x in ek.tree_leaves(args)]
    inputs = {o["name"]: a.reshape(-1).tolist() for o, a in zip(exported.description["inputs"], leaves, strict=True)}
    wanted = [x.numpy() for x in ek.tree_leaves(function(*args))]
    for found in in_browser(page, tmp_path, [inputs, inputs]):
        assert not isinstance(found, str), found
        for o, got, want in zip(exported.description["outputs"], found, wanted, strict=True):
            assert_near(np.array(got).astype(want.dtype).reshape(want.shape), want, o["name"], PLACES.get(made, 4))


@needs_browser
def test_a_fault_says_what_was_wrong_and_the_next_run_is_right(page, tmp_path):
    table = ek.tensor(np.arange(6, dtype=np.float32).reshape(3, 2))
    ek.export_webgpu(lambda ids: ek.take(table, ids, 0), (ek.tensor([0, 1]),), tmp_path / "some.webgpu")
    wrong, right, short = in_browser(page, tmp_path, [{"ids": [0, 7]}, {"ids": [2, 0]}, {"ids": [1]}])
    assert wrong.startswith("ModelError: take(float32[3, 2], int64[2]): ")
    assert "test_webgpu_export.py, line" in wrong
    assert right == [[4, 5, 0, 1]]
    assert short == 'ModelError: input "ids" is int64[2], 2 elements in all; it was given 1'


@needs_browser
def test_a_page_chooses_its_machine(page, tmp_path):
    model = nn.Sequential(nn.Linear(6, 3), nn.Tanh()).eval()
    ek.export_wasm(model, (ek.zeros((1, 6)),), tmp_path / "some.wasm")
    ek.export_webgpu(model, (ek.zeros((1, 6)),), tmp_path / "some.webgpu")
    in_browser(page, tmp_path, [])
    with web.served(tmp_path) as address:
        page.open(f"{address}/index.html")
        machine, reason, other, wrong = page.run("""
            const { load } = await import("./eshkol.js");
            const model = await load("some.wasm", { gpu: "some.webgpu" });
            const other = await load("some.wasm", { gpu: "none.webgpu" });
            const wrong = await load("some.wasm", { machine: "abacus" }).catch((error) => error.message);
            return [model.machine, model.reason, [other.machine, other.reason], wrong];
        """)
    assert machine in ("wasm", "webgpu")
    assert " ms here, " in reason
    assert other[0] == "wasm"
    assert "cannot be loaded: status 404" in other[1]
    assert wrong == 'machine is "auto", "wasm" or "webgpu", not "abacus"'


@needs_browser
def test_what_cannot_be_compared_stays_with_webassembly(page, tmp_path):
    def halved(x: Any) -> Any:
        return (x * 3).astype(ek.float16)

    ek.export_wasm(halved, (ek.zeros((4,)),), tmp_path / "some.wasm")
    ek.export_webgpu(halved, (ek.zeros((4,)),), tmp_path / "some.webgpu")
    in_browser(page, tmp_path, [])
    with web.served(tmp_path) as address:
        page.open(f"{address}/index.html")
        found = page.run("""
            const { load } = await import("./eshkol.js");
            const model = await load("some.wasm", { gpu: "some.webgpu" });
            return [model.machine, model.reason];
        """)
    assert found == ["wasm", '"out" is float16, whose bits are not compared']
