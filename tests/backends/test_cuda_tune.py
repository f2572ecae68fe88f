"""Choices of kernels that are measured: the search, answers on disk, and `eshkol tune` on an interpreted driver.

The driver's clock says what a test wants it to say, by the shared memory of the kernel that was launched last.
"""

from __future__ import annotations

import ctypes
import json
from dataclasses import dataclass, replace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from interpreted_driver import InterpretedDriver, installed
from test_cuda_warpgroups import PROCESSORS, gemm, gradients, plain

import eshkol as ek
from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.program import Program
from eshkol.atlas.types import Type
from eshkol.backends.cuda import trials
from eshkol.backends.cuda.warpgroups import attention_gradients, choices, tiling
from eshkol.backends.cuda.warpgroups.instructions import whole
from eshkol.backends.cuda.warpgroups.products import Product
from eshkol.backends.lanes.layout import Layout
from eshkol.cli import tune
from eshkol.cli.heat import HeatMap
from eshkol.cli.main import main
from eshkol.cli.usage import UsageError
from eshkol.errors import CacheError, DeviceLost, EshkolError
from eshkol.support import halving
from eshkol.support.answers import Answer, AnswerFile, Question
from eshkol.support.halving import Found, WrongAnswer, search
from eshkol.tensors.devices import open_backend

# --- the search -----------------------------------------------------------------------------------------


class Bench:
    """Candidates are their names; each takes so many seconds, of a clock that only they move."""

    def __init__(self, seconds: dict[str, float], load: float = 0.0, fails: dict[str, Exception] | None = None) -> None:
        self.seconds, self.cost, self.fails, self.now = seconds, load, fails or {}, 0.0
        self.runs: list[str] = []

    def load(self, name: str) -> None:
        self.now += self.cost

    def ready(self, name: str) -> Any:
        if name in self.fails:
            raise self.fails[name]

        def run() -> float:
            self.runs.append(name)
            self.now += self.seconds[name]
            return self.seconds[name]

        return run

    def search(self, limit: float = 1e9, **more: Any) -> Found[str]:
        return search([*self.seconds], self.load, self.ready, limit=limit, clock=lambda: self.now, **more)


def test_the_fastest_is_found_and_the_slow_are_measured_least():
    bench = Bench({"a": 5.0, "b": 4.0, "c": 3.0, "d": 100.0, "e": 3.5})
    found = bench.search()
    assert (found.first, found.best, found.gain) == ("a", "c", pytest.approx(5 / 3))
    assert bench.runs.count("d") == 1
    assert bench.runs.count("c") > bench.runs.count("b") > bench.runs.count("d")


def test_what_is_hardly_faster_does_not_replace_the_first():
    assert Bench({"a": 1.0, "b": 0.995}).search().best == "a"


def test_those_near_the_best_are_measured_too():
    bench = Bench({"a": 5.0, "b": 4.0})
    bench.seconds["b'"] = 2.0
    found = search(
        ["a", "b"], bench.load, bench.ready, limit=1e9, near=lambda name: ["b'"] * (name == "b"), clock=lambda: 0.0
    )
    assert found.best == "b'"


def test_time_is_up_before_all_are_tried_but_the_first_is_measured():
    found = Bench(dict.fromkeys("abcdef", 1.0), load=10.0).search(limit=40.0)
    assert list(found.seconds) == ["a", "b"]
    assert found.untried == 4
    assert list(Bench({"a": 1.0, "b": 0.1}, load=10.0).search(limit=0.001).seconds) == ["a"]


def test_candidates_that_fail_or_are_wrong_are_named_and_left_out():
    fails = {"b": EshkolError("no registers\nhint"), "c": WrongAnswer("3 elements"), "d": KeyError("x")}
    found = Bench(dict.fromkeys("abcd", 1.0), fails=fails).search(workers=3)
    assert found.failed == {"b": "no registers", "d": "'x'"}
    assert found.wrong == {"c": "3 elements"}
    assert list(found.seconds) == ["a"]


def test_nothing_goes_on_without_a_device_or_without_the_first():
    found = Bench(dict.fromkeys("abc", 1.0), fails={"b": DeviceLost("gone")}).search()
    assert (found.stopped.message, found.untried, found.best) == ("gone", 1, "a")
    with pytest.raises(EshkolError, match="without measuring fails: gone"):
        Bench({"a": 1.0, "b": 1.0}, fails={"a": EshkolError("gone")}).search()


# --- answers on disk ------------------------------------------------------------------------------------

QUESTION, ANSWER = Question("products", "BF16 1x2x3 nn"), Answer("rows=64", 1.0, "rows=128", 2.0)


def answer_file(folder, device="GPU 1", **sources: str) -> AnswerFile:
    return AnswerFile(folder, device, {"products": "p1", "attention": "a1"} | sources)


def test_answers_are_kept_beside_those_that_are_there(tmp_path):
    other = Question("attention", "x")
    assert answer_file(tmp_path).read() == {}
    answer_file(tmp_path).keep({QUESTION: ANSWER})
    assert answer_file(tmp_path).keep({other: ANSWER}) == {QUESTION: ANSWER, other: ANSWER}
    assert answer_file(tmp_path).read() == {QUESTION: ANSWER, other: ANSWER}
    assert [path.name for path in (tmp_path / "tuned").iterdir()] == ["GPU-1.json"]
    assert ANSWER.gain == 2.0


def test_answers_of_other_sources_are_left_aside_and_go(tmp_path):
    other = Question("attention", "x")
    answer_file(tmp_path).keep({QUESTION: ANSWER, other: ANSWER})
    changed = answer_file(tmp_path, products="p2")
    assert changed.read() == {other: ANSWER}
    changed.keep({})
    assert answer_file(tmp_path, products="p2").read() == {other: ANSWER}
    assert "1x2x3" not in changed.path.read_text(encoding="utf-8")


@pytest.mark.parametrize(("change", "why"), [
    (lambda text: text[:-9], "Expecting|Unterminated|delimiter"), (lambda text: "[]", "format 1"),
    (lambda text: text.replace('"format": 1', '"format": 2'), "format 1"),
    (lambda text: text.replace("GPU 1", "GPU 2"), "'GPU 2', not of 'GPU 1'"),
    (lambda text: text.replace('"answers"', '"others"'), "missing"),
    (lambda text: text.replace('"choice"', '"chosen"'), "is no answer"),
    (lambda text: text.replace('"microseconds": 1.0', '"microseconds": -1.0'), "is no answer"),
])  # fmt: skip
def test_a_file_that_is_something_else_is_refused_by_name(tmp_path, change, why):
    file = answer_file(tmp_path)
    file.keep({QUESTION: ANSWER})
    file.path.write_text(change(file.path.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(CacheError, match=why) as caught:
        file.read()
    assert str(file.path) in caught.value.message
    assert "remove the file" in caught.value.hint


def test_a_folder_that_is_none_is_an_error(tmp_path):
    (tmp_path / "tuned").write_text("")
    with pytest.raises(CacheError, match="Not a directory"):
        AnswerFile(tmp_path, "x", {}).keep({})


# --- choices --------------------------------------------------------------------------------------------


def test_questions_tell_apart_what_matters_and_nothing_else():
    base = plain(64, 128, 256)
    shared = plain(64, 128, 256, (3,))
    others = [
        base, plain(65, 128, 256), plain(64, 136, 256), plain(64, 128, 264), plain(64, 128, 256, turned=(True, False)),
        plain(64, 128, 256, turned=(False, True)), shared, replace(shared, b=replace(shared.b, batch=(0,))),
        replace(base, ty=Type.F16), replace(base, c=replace(base.c, distance=129)),
    ]  # fmt: skip
    assert len({choices.of_product(p, PROCESSORS).question for p in others}) == len(others)
    moved = replace(base, a=replace(base.a, buffer="z", offset=512, distance=512))
    assert choices.of_product(moved, PROCESSORS).question == choices.of_product(base, PROCESSORS).question
    of = [gradients(64, of_keys=keys, causal=causal) for keys in (False, True) for causal in (False, True)]
    tile = attention_gradients.OF_KEYS
    assert len({choices.of_gradients(g, tile, PROCESSORS).question for g in of}) == 4
    assert heads(64).question != heads(64, causal=False).question
    assert heads(64).question == Question("attention", "BF16 64x1024x1024x64 causal")


def test_what_comes_to_be_said_about_a_kernel_is_in_its_question():
    @dataclass(frozen=True)
    class Followed(Product):
        after: str = "bias"

    more = Followed(**vars(plain(64, 128, 256)))
    assert choices.of_product(more, PROCESSORS).question.key == "BF16 64x128x256 nn after=bias"


def heads(width: int, queries: int = 1024, *, causal: bool = True) -> choices.Choices:
    b = ProgramBuilder("p")
    out, sums, *places = (b.buffer(f"x{k}", Type.F32 if k == 1 else Type.BF16).address for k in range(5))
    strides = {f"{name}_strides": (queries * width, width) for name in ("query", "key", "value")}
    b.batched_attention(
        Type.BF16, out, sums, *places, batch=64, queries=queries, keys=queries, head_dim=width, scale=0.1,
        causal=causal, batches=(64,), **strides,
    )  # fmt: skip
    asked: list[choices.Choices] = []
    assert whole(b.build(), PROCESSORS, lambda c: asked.append(c) or c.first) is not None
    return asked[0]


def test_every_candidate_fits_and_the_first_is_the_models():
    found = [choices.of_product(plain(m, 4096, 4096), PROCESSORS) for m in (16, 512, 8192)]
    found += [heads(64), heads(128, 4096)]
    for one in found:
        tiles = one.candidates
        assert tiles[0] == one.first
        assert len(tiles) == len(set(tiles)) > 20
        assert all(tile.memory <= tiling.MEMORY and tile.stages >= 2 for tile in tiles)
        assert len({choices.label(tile) for tile in tiles}) == len(tiles)
        promising = one.promising()
        assert promising[0] == one.first
        assert set(promising) < set(tiles)
        deepest = {replace(tile, stages=0) for tile in tiles}
        assert {replace(tile, stages=0) for tile in promising} == deepest
        near = {tile: one.near(tile) for tile in promising[:4]}
        assert any(near.values())
        assert all(replace(x, stages=tile.stages) == tile != x for tile, others in near.items() for x in others)


def test_answers_of_a_family_hang_on_all_that_writes_its_kernels():
    names = {family: {path.stem for path in choices._imported(those)} for family, those in choices.FAMILIES.items()}
    assert {"products", "tiling", "ring", "maps", "ptx"} <= names["products"]
    assert {"attention", "heads", "ring", "maps", "ptx"} <= names["attention"]
    assert names["convolutions"] > names["products"]
    assert not names["attention"] & {"products", "tiling", "choices"}
    assert len({*choices.sources().values()}) == 4


def test_kernels_are_written_with_the_answer_where_there_is_one():
    program = gemm(m=512, n=512, k=512)
    asked: list[choices.Choices] = []
    model = whole(program, PROCESSORS, lambda c: asked.append(c) or c.first)
    other = asked[0].candidates[-1]
    answers = {asked[0].question: choices.label(other)}
    assert whole(program, PROCESSORS, choices.by_answers(answers)).memory == other.memory != model.memory
    assert whole(program, PROCESSORS, choices.by_answers({QUESTION: "x"})) == model == whole(program, PROCESSORS)
    with pytest.raises(CacheError, match="is no choice of it: rows=7"):
        whole(program, PROCESSORS, choices.by_answers({asked[0].question: "rows=7"}))


# --- the command ----------------------------------------------------------------------------------------


class TimedDriver(InterpretedDriver):
    """Launches take as many milliseconds as their kernels have KiB of shared memory; some do something else."""

    def __init__(self) -> None:
        super().__init__()
        self.memory_used: list[int] = []
        self.when: dict[int, Any] = {}  # shared memory → what happens after such a launch

    def cuLaunchKernel(self, kernel: int, *given: Any) -> Any:
        code = super().cuLaunchKernel(kernel, *given)
        if given[6]:
            self.memory_used.append(given[6])
        after = self.when.get(given[6])
        return code if after is None else after(self.handles[kernel], given)

    def cuEventElapsedTime(self, found: Any, start: int, end: int) -> None:
        found._obj.value = self.memory_used[-1] / 1024


@pytest.fixture
def driver(monkeypatch, tmp_path):
    monkeypatch.setenv("ESHKOL_CACHE_DIR", str(tmp_path / "cache"))
    for module, name, number in ((trials, "MOST_REPEATS", 1), (halving, "FEW", 1), (halving, "FINAL", 1)):
        monkeypatch.setattr(module, name, number)
    with installed(monkeypatch, TimedDriver()) as made:
        yield made


SHAPE = "16x16x16"
MODEL = tiling.best(plain(16, 16, 16), PROCESSORS)
BEST = replace(MODEL, stages=2)


def run(*more: str) -> int:
    return main(["tune", "--shapes", SHAPE, "--most", "2", *more])


def product() -> np.ndarray:
    with ek.device("cuda"):
        x = ek.tensor(np.arange(256.0).reshape(16, 16) % 7, dtype="bfloat16")
    return FUNCTION(x, x).astype("float32").numpy()


FUNCTION = ek.jit(lambda a, b: a @ b)
EXPECTED = np.linalg.matrix_power(np.arange(256.0).reshape(16, 16) % 7, 2)


def test_what_was_measured_is_used_at_once_and_by_every_later_process(driver, capsys, tmp_path, monkeypatch):
    np.testing.assert_allclose(product(), EXPECTED, rtol=8e-3)
    assert driver.memory_used[-1] == MODEL.memory
    before = open_backend("cuda").description
    assert run("--map", str(tmp_path / "maps")) == 0
    told = capsys.readouterr().out
    assert f"gain {MODEL.memory / BEST.memory:.3f}" in told
    assert "█ 1.00" in told
    assert "1 shapes measured; on average" in told
    (picture,) = (tmp_path / "maps").iterdir()
    assert picture.read_text(encoding="utf-8").startswith("<svg")
    np.testing.assert_allclose(product(), EXPECTED, rtol=8e-3)
    assert driver.memory_used[-1] == BEST.memory  # though the function was compiled before
    assert open_backend("cuda").description is not before
    (path,) = (tmp_path / "cache" / "tuned").iterdir()
    (row,) = json.loads(path.read_text(encoding="utf-8"))["answers"]
    assert (row["for"], row["choice"]) == ("BF16 16x16x16 nn", choices.label(BEST))

    with installed(monkeypatch, TimedDriver()) as later:
        product()
        assert later.memory_used[-1] == BEST.memory
        assert run() == 0
        assert "measured before" in capsys.readouterr().out
    monkeypatch.setenv("ESHKOL_TUNE", "0")
    with installed(monkeypatch, TimedDriver()) as without:
        product()
        assert without.memory_used[-1] == MODEL.memory
    monkeypatch.delenv("ESHKOL_TUNE")
    path.write_text("{}", encoding="utf-8")
    with installed(monkeypatch, TimedDriver()), pytest.raises(CacheError, match="format 1"):
        product()


def spoilt(program: Program, given: Any) -> None:
    """Something else stands in the result of the launch."""
    (_, record) = (ctypes.c_uint64 * 2).from_address(given[8])
    out = ctypes.c_uint64.from_address(record + 8 * Layout.of(program).word("out")).value
    ctypes.memset(out + 64, 0x42, 64)


def test_a_wrong_answer_is_refused_loudly_and_failures_are_named(driver, capsys):
    driver.when[BEST.memory] = spoilt
    driver.when[replace(MODEL, stages=3).memory] = lambda program, given: 701  # too many resources
    assert run("--most", "1") == 1
    told = capsys.readouterr()
    assert f"WRONG ANSWER, not used: products BF16 16x16x16 nn with {choices.label(BEST)}" in told.err
    assert "elements are wrong" in told.err
    assert "stages=3: " in told.out
    assert "1 failed" in told.out
    (answer,) = open_backend("cuda").tuning.answers.values()
    assert answer.choice == choices.label(replace(MODEL, stages=4))
    assert "✗" in told.out


def test_results_longer_than_what_is_drawn_are_compared_too(monkeypatch):
    """Of these a part says how large elements are: every so many of them."""
    monkeypatch.setattr(trials, "RANDOM", 100)
    wanted = np.full(1000, 0x3F80, np.uint16)  # ones
    near, far = wanted.copy(), wanted.copy()
    near[7] += 1
    far[7:9] = 0x4000
    assert trials._difference(wanted, near, Type.BF16) is None
    assert trials._difference(wanted, far, Type.BF16) == "2 of 1000 elements are wrong"


def test_what_is_wrong_between_the_pieces_that_are_compared_first_is_found_before_it_is_an_answer(
    driver, capsys, monkeypatch
):
    for name, number in (("PIECES", 2), ("PIECE", 16), ("ALIGNED", 16)):
        monkeypatch.setattr(trials, name, number)
    driver.when[BEST.memory] = spoilt
    assert run("--most", "1") == 1
    assert "32 of 256 elements are wrong" in capsys.readouterr().err
    (answer,) = open_backend("cuda").tuning.answers.values()
    assert answer.choice == choices.label(MODEL)


def test_what_was_learnt_stays_when_someone_interrupts(driver, capsys, monkeypatch):
    measured = trials.measured

    def once(backend: Any, call: Any, **more: Any) -> Any:
        monkeypatch.setattr(trials, "measured", interrupt)
        return measured(backend, call, **more)

    def interrupt(*given: Any, **more: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(trials, "measured", once)
    assert main(["tune", "--shapes", f"{SHAPE},16x16x32", "--most", "1"]) == tune.INTERRUPTED
    assert "interrupted: 1 shapes measured, 1 left for another time" in capsys.readouterr().out
    assert len(open_backend("cuda").tuning.answers) == 1


def test_without_the_device_the_command_ends_at_once_and_says_why(driver, capsys, monkeypatch):
    class Ended(BaseException):
        pass

    def end(code: int) -> None:
        raise Ended(code)

    monkeypatch.setattr(tune.os, "_exit", end)
    driver.when[BEST.memory] = lambda program, given: 700
    with pytest.raises(Ended, match="1"):
        main(["tune", "--shapes", f"{SHAPE},16x16x32", "--most", "1"])
    told = capsys.readouterr()
    assert "1 left for another time" in told.out
    assert "the device is gone: " in told.err
    assert open_backend("cuda").tuning.answers == {}


def test_a_program_says_its_shapes_by_itself(driver, capsys, tmp_path):
    file = tmp_path / "program.py"
    file.write_text(
        "import sys, eshkol as ek\n"
        "with ek.device('cuda'):\n"
        "    x = ek.ones((int(sys.argv[1]), 16), dtype='float16')\n"
        "    ek.jit(lambda a: a @ a.T)(x)\n"
        "raise SystemExit\n",
        encoding="utf-8",
    )
    assert main(["tune", "--most", "1", "run", str(file), "32"]) == 0
    assert "products F16 32x32x16 nt (" in capsys.readouterr().out
    file.write_text("raise SystemExit(3)", encoding="utf-8")
    assert main(["tune", "run", str(file)]) == 1
    assert "ended with 3" in capsys.readouterr().err
    file.write_text("", encoding="utf-8")
    assert main(["tune", "run", str(file)]) == 1
    assert "no kernel that leaves something open" in capsys.readouterr().err


def test_attention_and_its_gradients_are_three_questions(driver):
    options = type("Options", (), {"dtype": "bf16", "device": "cuda"})
    backend = open_backend("cuda")
    calls = tune._launched(backend, [tune.parsed("attention 1x2x16x16 causal gradients")], options)
    found = [str(question) for question in trials.questions(backend, calls)]
    assert found == [
        "attention BF16 2x16x16x16 causal", "attention-gradients BF16 2x16x16x16 causal of=queries",
        "attention-gradients BF16 2x16x16x16 causal of=keys",
    ]  # fmt: skip


@pytest.mark.parametrize(("given", "why"), [
    (["--shapes", "16x16"], "no shape of products"), (["--shapes", "16x16x0"], "no shape of products"),
    (["--shapes", "16x16x16:nt:tn"], "no shape of products"), (["--shapes", ","], "no shapes"),
    (["--family", "attention", "--shapes", "1x2x3x4:nt"], "no shape of attention"), (["walk", "x.py"], "run FILE"),
    (["run", "x.py", "--model", "gpt2"], "says its shapes itself"), (["--limit", "0"], "more than 0"),
])  # fmt: skip
def test_arguments_that_make_no_sense(given, why, capsys):
    assert main(["tune", *given]) == 2
    assert why in capsys.readouterr().err


def test_shapes_as_they_are_written(tmp_path):
    assert tune.parsed("2x3x4:nt") == tune.Shape("products", (2, 3, 4), frozenset({"nt"}))
    assert tune.parsed("attention 1x2x3x4 causal").words == {"causal"}
    for lines in tune.MODELS.values():
        assert all(tune.parsed(line) for line in lines)
    file = tmp_path / "shapes"
    file.write_text("# of mine\n2x3x4  # small\nattention 1x2x3x4\n\n", encoding="utf-8")
    options = type("Options", (), {"program": [], "family": None, "shapes": str(file), "model": None})
    assert [shape.family for shape in tune.asked_for(options)] == ["products", "attention"]
    with pytest.raises(UsageError):
        tune.parsed("")


def test_other_machines_are_told_how_they_are_measured(capsys):
    assert main(["tune", "--device", "cpu"]) == 1
    assert "ESHKOL_TUNE=1" in capsys.readouterr().err


# --- heat maps ------------------------------------------------------------------------------------------


def test_a_heat_map_has_tiles_down_and_stages_across():
    times = {"rows=64 stages=4 cluster=1": 1.0, "rows=64 stages=2 cluster=1": 1.1, "rows=128 stages=4 cluster=2": 3.0}
    heat = HeatMap(times, {"rows=128 stages=2 cluster=2": "<no registers>"})
    assert heat.text().splitlines() == [
        "            stages       2       4",
        "           rows=64  ▒ 1.10  █ 1.00",
        "rows=128 cluster=2       ✗    3.00",
    ]
    assert HeatMap({"a=1 stages=2": 1.0, "b=1 stages=3": 1.0}, {}).text().count("·") == 2
    svg = heat.svg("a < b")
    assert "a &lt; b" in svg
    assert len(ElementTree.fromstring(svg).findall("{*}rect")) == 5
