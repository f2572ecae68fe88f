"""The pages of models in a browser without a window: one draws, writes and enters numbers, and reads the answers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import browser as web
import eshkol as ek
from eshkol import nn
from eshkol.cli.main import main

pytestmark = pytest.mark.skipif(web.MISSING is not None, reason=str(web.MISSING))
READY = "document.body.dataset.ready === 'yes'"
NOISE = re.compile(r"favicon|No available adapters")  # what a browser without a GPU says by itself


@pytest.fixture(autouse=True)
def on_the_cpu():
    with ek.use_backend("cpu"):
        yield


@pytest.fixture(scope="module")
def browser() -> Iterator[web.Browser]:
    with web.browser() as found:
        yield found


def exported(folder: Path, model: nn.Module, **metadata: Any) -> Path:
    ek.io.save_checkpoint(folder / "some.eskpt", model, metadata=metadata)
    assert main(["export", "web", str(folder / "some.eskpt"), "-o", str(folder / "site")]) == 0
    return folder / "site"


def least_squares() -> nn.Module:
    """A network without hidden layers that knows digits: its weights are those of least squares."""
    images, labels = (np.asarray(a) for a in ek.data.digits("train", flat=True).arrays)
    rows = np.hstack([images, np.ones((len(images), 1), np.float32)])
    wanted = np.eye(10, dtype=np.float32)[labels]
    found = np.linalg.lstsq(rows.T @ rows + 0.5 * np.eye(65), rows.T @ wanted, rcond=None)[0].astype(np.float32)
    linear = nn.Linear(64, 10)
    linear.load_state_dict({"weight": ek.tensor(10 * found[:64].T), "bias": ek.tensor(10 * found[64])})
    return linear


def shapes() -> dict[str, list[tuple[float, float]]]:
    """Strokes on a sheet whose sides are 1."""
    turns = [2 * math.pi * k / 24 for k in range(25)]
    return {
        "0": [(0.5 + 0.2 * math.sin(t), 0.5 - 0.34 * math.cos(t)) for t in turns],
        "1": [(0.5, 0.15 + 0.07 * k) for k in range(11)],
    }  # fmt: skip


def test_digits_are_told_while_one_draws(browser, tmp_path):
    model = least_squares()
    with web.served(exported(tmp_path, model)) as address:
        browser.look(1000, 760)
        browser.open(f"{address}/index.html")
        browser.until(READY)
        assert browser.run("return document.getElementById('best').textContent;") == "–"
        for digit, points in shapes().items():
            x, y, side = browser.run(
                "const f = document.getElementById('sheet').getBoundingClientRect(); return [f.x, f.y, f.width];"
            )
            browser.drag([(x + u * side, y + v * side) for u, v in points])
            browser.until(f"document.getElementById('best').textContent === '{digit}'")
            browser.run("for (let k = 0; k < 3; k++) await new Promise(requestAnimationFrame);")
            shares = browser.run("return [...document.querySelectorAll('.track')].map((b) => +b.ariaValueNow);")
            image = browser.run("return [...(await import('./page.js')).picture()];")
            wanted = ek.softmax(model(ek.tensor(np.array([image], np.float32))), axis=-1).detach().numpy()[0]
            np.testing.assert_allclose(shares, 100 * wanted, atol=0.06)
            browser.run("document.getElementById('clear').click();")
            browser.until("document.getElementById('best').textContent === '–'")
        assert not [said for said in browser.messages() if not NOISE.search(said)]


def test_text_is_written(browser, tmp_path):
    ek.seed(3)
    letters = [*"\nabcdefgh"]
    model = nn.GPT(vocabulary=9, context=24, layers=1, heads=2, width=16)
    for parameter in model.parameters():
        with ek.no_grad():
            parameter.mul_(4.0)  # so that the likeliest are far apart
    prompt = "abc"
    greedy = model.generate(ek.tensor([letters.index(c) for c in prompt]), 20, temperature=0).numpy()
    with web.served(exported(tmp_path, model, tokenizer=letters)) as address:
        browser.look(390, 844, dark=True)
        browser.open(f"{address}/index.html")
        browser.until(READY)

        def write(beginning: str, temperature: float, count: int) -> None:
            script = """
              const [prompt, temperature, count] = arguments;
              document.getElementById("prompt").value = prompt;
              document.getElementById("temperature").value = temperature;
              document.getElementById("count").value = count;
              document.getElementById("write").click();
            """
            browser.run(script.replace("arguments", f"[{beginning!r}, {temperature}, {count}]"))

        text = "document.getElementById('written').textContent"
        write(prompt, 0, 20)
        browser.until("!document.getElementById('write').disabled")
        assert browser.run(f"return {text};") == "".join(letters[k] for k in greedy)
        write(prompt, 1, 60)  # beyond the context
        browser.until("!document.getElementById('write').disabled")
        written = browser.run(f"return {text};")
        assert len(written) == 63
        assert set(written) <= set(letters)
        write(prompt, 1, 1000)
        browser.until("document.getElementById('figures').textContent !== ''")
        browser.run("document.getElementById('stop').click();")
        browser.until("!document.getElementById('write').disabled")
        assert len(browser.run(f"return {text};")) <= 1003
        write("xyz", 1, 20)
        assert "does not know the character" in browser.until("document.getElementById('problem').textContent")
        assert browser.run("return document.documentElement.scrollWidth <= innerWidth;"), "it is wider than the phone"
        assert not [said for said in browser.messages() if not NOISE.search(said)]


def test_any_model_can_be_tried(browser, tmp_path):
    linear = nn.Linear(3, 2)
    linear.load_state_dict({"weight": ek.tensor([[1.0, 0, 0], [0, 2.0, 0]]), "bias": ek.tensor([0.5, -1.0])})
    with web.served(exported(tmp_path, linear)) as address:
        browser.look(1000, 760)
        browser.open(f"{address}/index.html")
        browser.until(READY)
        run = "document.getElementById('input-x').value = '%s'; document.getElementById('run').click();"
        browser.run(run % "1, 2, 3")
        assert browser.until("document.querySelector('#outputs td')?.textContent") == "1.5  3"
        browser.run(run % "1 2")
        assert "it was given 2" in browser.until("document.getElementById('problem').textContent")
        browser.run(run % "1 2 three")
        assert browser.until("document.getElementById('problem').textContent") == 'x: "three" is no number'


def test_a_module_that_is_missing_is_told(browser, tmp_path):
    site = exported(tmp_path, nn.Linear(3, 2))
    (site / "model.wasm").unlink()
    with web.served(site) as address:
        browser.open(f"{address}/index.html")
        assert "cannot be loaded: status 404" in browser.until("document.getElementById('problem').textContent")
    browser.messages()
