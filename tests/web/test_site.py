"""`eshkol export web`: which page a model gets, what is in its folder, and what is refused without leaving anything."""

from __future__ import annotations

import errno
import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

import eshkol as ek
from eshkol import nn
from eshkol.backends.wasm.export import described
from eshkol.cli.main import main
from eshkol.errors import TensorError
from eshkol.web import KINDS
from eshkol.web.pages import Page
from eshkol.web.site import PARTS, write_site

FILES = ["eshkol.js", "gpu.js", "index.html", "model.wasm", "model.webgpu", "page.js", "style.css"]


@pytest.fixture(autouse=True)
def on_the_cpu():
    with ek.use_backend("cpu"):
        yield


def saved(folder: Path, model: nn.Module, **metadata: Any) -> str:
    file = folder / "some.eskpt"
    ek.io.save_checkpoint(file, model, metadata=metadata)
    return str(file)


def digits_model() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))


def settings(folder: Path) -> Any:
    found = re.search(r'id="settings">(.*?)</script>', (folder / "index.html").read_text("utf-8"), re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def exported(*words: str) -> int:
    return main(["export", "web", *words])


def test_digits(tmp_path, capsys):
    model = saved(tmp_path, digits_model(), input=[1, 1, 8, 8], labels=[*"abcdefghij"])
    assert exported(model, "-o", str(tmp_path / "site"), "--title", "Letters & <signs>") == 0
    assert "the page 'digits'" in capsys.readouterr().out
    assert sorted(p.name for p in (tmp_path / "site").iterdir()) == FILES
    assert settings(tmp_path / "site") == {
        "side": 8, "box": 8, "centre": "box", "ink": 1.25, "labels": [*"abcdefghij"], "gpu": "model.webgpu",
    }  # fmt: skip
    assert "<title>Letters &amp; &lt;signs&gt;</title>" in (tmp_path / "site" / "index.html").read_text("utf-8")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["site", "some.eskpt"]


def test_text(tmp_path, capsys):
    model = nn.GPT(vocabulary=5, context=8, layers=1, heads=1, width=4)
    file = saved(tmp_path, model, tokenizer=["\n", "a", "</", "b", "c"])
    assert exported(file, "-o", str(tmp_path / "site")) == 1
    assert "should be characters" in capsys.readouterr().err
    file = saved(tmp_path, model, tokenizer=["\n", "a", "<", "b", "c"])
    assert exported(file, "-o", str(tmp_path / "site")) == 0
    found = settings(tmp_path / "site")
    assert (found["context"], found["characters"], found["prompt"]) == (8, ["\n", "a", "<", "b", "c"], "\n")
    assert "<" not in re.search(r'id="settings">(.*?)</script>', (tmp_path / "site/index.html").read_text("utf-8"))[1]


def test_a_tokenizer_from_its_file(tmp_path, capsys):
    model = saved(tmp_path, nn.GPT(vocabulary=3, context=8, layers=1, heads=1, width=4))
    assert exported(model, "-o", str(tmp_path / "site")) == 1
    assert "does not say which characters its tokens are" in capsys.readouterr().err
    ek.data.CharTokenizer("xy").save(tmp_path / "two.json")
    assert exported(model, "-o", str(tmp_path / "site"), "--tokenizer", str(tmp_path / "two.json")) == 1
    assert "knows 3 tokens, and the tokenizer 2" in capsys.readouterr().err
    ek.data.CharTokenizer("xyz").save(tmp_path / "three.json")
    assert exported(model, "-o", str(tmp_path / "site"), "--tokenizer", str(tmp_path / "three.json")) == 0
    assert settings(tmp_path / "site")["characters"] == ["x", "y", "z"]


def test_any_other_model(tmp_path, capsys):
    model = saved(tmp_path, nn.Sequential(nn.Linear(6, 3), nn.Tanh()))
    assert exported(model, "-o", str(tmp_path / "site")) == 0
    assert "the page 'plain'" in capsys.readouterr().out


def test_a_model_that_takes_indices(tmp_path):
    model = saved(tmp_path, nn.Sequential(nn.Embedding(7, 3), nn.Flatten(), nn.Linear(12, 2)), input=[1, 4])
    assert exported(model, "-o", str(tmp_path / "site")) == 0
    (given,) = described((tmp_path / "site" / "model.wasm").read_bytes())["inputs"]
    assert (given["dtype"], given["shape"]) == ("int64", [1, 4])


@pytest.mark.slow
def test_the_example(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["web.py", str(tmp_path), "1", "2"])
    runpy.run_path(str(Path(__file__).parents[2] / "examples" / "web.py"))
    said = capsys.readouterr().out
    assert re.search(r"digits: (\d+\.\d) % of those", said)
    assert re.search(r"text: loss \d\.\d+", said)
    assert sorted(p.name for p in (tmp_path / "text").iterdir()) == FILES
    assert len(settings(tmp_path / "text")["characters"]) == 61


REFUSED = {
    "no file": ([], "missing.eskpt", 1),
    "a file of something else": (["text.txt"], "is refused: it has 13 bytes", 1),
    "no shape": (["shapeless.eskpt"], "does not say what shape the model's input has", 1),
    "a shape that does not fit": (["shapeless.eskpt", "--input", "1x1x9x9"], "the model does not take float32", 1),
    "a shape that is none": (["shapeless.eskpt", "--input", "1,1"], "is a shape such as 1x1x28x28", 2),
    "a dtype that is none": (["shapeless.eskpt", "--input", "float99:1x1x8x8"], "float99", 1),
    "a page for others": (["shapeless.eskpt", "--input", "1x1x8x8", "--page", "text"], "is for a GPT", 1),
    "no picture": (["flat.eskpt", "--page", "digits"], "one square picture", 1),
    "a model of one's own": (["own.eskpt"], "Own", 1),
}


class Own(nn.Module):
    def forward(self, x: Any) -> Any:
        return x


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_leaves_nothing(case, tmp_path, capsys):
    words, wanted, code = REFUSED[case]
    made = tmp_path / "models"
    made.mkdir()
    (made / "text.txt").write_text("no checkpoint", "utf-8")
    models = {
        "shapeless": nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(72, 4)), "flat": nn.Linear(5, 2),
        "own": Own(),
    }  # fmt: skip
    for name, model in models.items():
        ek.io.save_checkpoint(made / f"{name}.eskpt", model)
    file = str(made / (words[0] if words else "missing.eskpt"))
    assert exported(file, "-o", str(tmp_path / "site"), *words[1:]) == code
    said = capsys.readouterr().err
    assert re.search(wanted, said), said
    assert "internal error" not in said
    assert [p.name for p in tmp_path.iterdir()] == ["models"]


def test_what_no_gpu_of_a_page_can_do_is_left_to_webassembly(tmp_path):
    page = Page("plain", lambda x: ek.while_loop(lambda c: c.sum() < 9, lambda c: c + 1, x), (ek.zeros((2,)),), {})
    assert "a loop is not run" in str(write_site(page, tmp_path / "site").without_gpu)
    assert sorted(p.name for p in (tmp_path / "site").iterdir()) == [f for f in FILES if "gpu" not in f]
    assert settings(tmp_path / "site") == {}


def test_an_op_of_the_host_is_refused_before_anything_is_written(tmp_path):
    page = Page("plain", lambda x: ek.sort(x), (ek.zeros((50,)),), {})
    with pytest.raises(TensorError, match="computed by the host"):
        write_site(page, tmp_path / "site")
    assert not [*tmp_path.iterdir()]


def test_folders(tmp_path, capsys):
    model, site = saved(tmp_path, digits_model(), input=[1, 64]), tmp_path / "site"
    site.mkdir()
    assert exported(model, "-o", str(site)) == 0  # into an empty one
    assert exported(model, "-o", str(site)) == 1
    assert re.search(r"is not empty.*--force", capsys.readouterr().err, re.DOTALL)
    (site / "mine.txt").write_text("stays", "utf-8")
    (site / "page.js").write_text("old", "utf-8")
    assert exported(model, "-o", str(site), "--force") == 0
    assert sorted(p.name for p in site.iterdir()) == sorted([*FILES, "mine.txt"])
    assert (site / "page.js").read_bytes() == (PARTS / "digits.js").read_bytes()
    assert exported(model, "-o", str(tmp_path / "some.eskpt")) == 1
    assert "no folder" in capsys.readouterr().err
    assert exported(model, "-o", str(tmp_path / "none" / "site")) == 1
    assert "there is no folder" in capsys.readouterr().err


def test_a_full_disk_leaves_what_was_there(tmp_path, capsys, monkeypatch):
    model, site = saved(tmp_path, digits_model(), input=[1, 64]), tmp_path / "site"
    write, written = Path.write_bytes, []

    def full(self: Path, data: bytes) -> int:
        written.append(self.name)
        if len(written) == 3:
            raise OSError(errno.ENOSPC, "No space left on device", str(self))
        return write(self, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    assert exported(model, "-o", str(site)) == 1
    assert "No space left on device" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["some.eskpt"]


def test_every_page_has_its_parts():
    assert sorted(p.name for p in PARTS.iterdir()) == sorted(
        ["style.css", *(f"{kind}.{ending}" for kind in KINDS for ending in ("html", "js"))]
    )
    for kind in KINDS:
        text = (PARTS / f"{kind}.html").read_text("utf-8")
        assert not re.search(r"""(?:src|href)="https?:""", text), "pages load nothing from elsewhere"
        for field in re.findall(r'<(?:input|textarea)[^>]*id="([\w-]+)"', text):
            assert f'for="{field}"' in text, f"{field} has no label"
