"""The Jupyter kernel, tried by a real notebook: cells, errors, pictures, completion, interrupts."""

from __future__ import annotations

import asyncio
import base64
import json
import struct
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

import eshkol as ek
from eshkol.cli.main import main
from eshkol.errors import EshkolError

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

from eshkol.bindings.notebook import display, spec  # noqa: E402  needs ipykernel
from eshkol.bindings.notebook.rich import bundle_of, picture  # noqa: E402  it does, too
from eshkol.session.colouring import coloured  # noqa: E402


def png(red: int = 200) -> bytes:
    """A picture of one pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixel = zlib.compress(bytes([0, red, 0, 0]))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixel) + chunk(b"IEND", b"")


SVG = '<svg xmlns="http://www.w3.org/2000/svg"/>'
CELLS = {
    "definition": '(define (square-of x) "x times x" (* x x))',
    "value": '(display "first")\n(newline)\n(display "λ" (current-error-port))\n(map square-of (list 1 2 3))',
    "error": "(define (f x)\n  (+ 1 (car x)))\n(f 5)",
    "after": "(values 1 'two)",
    "picture": '(display-image "pixel.png")\n(display-image (string->utf8 "{svg}"))',
    "markdown": '(display-markdown "# hello")',
    "syntax": "(car",
    "interrupt": '(display "begun")\n(newline)\n(let loop () (loop))',
}


class Run:
    """A notebook that has run, and what its kernel said to the questions of an editor."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        spec.write(folder / "kernels" / "eshkol")
        (folder / "pixel.png").write_bytes(png())
        patch.setenv("JUPYTER_PATH", str(folder))
        patch.setenv("PYTHONPATH", str(Path(ek.__file__).parents[1]))
        texts = [text.replace("{svg}", SVG.replace('"', '\\"')) for text in CELLS.values()]
        cells = [nbformat.v4.new_code_cell(text) for text in texts]
        kernel = {"name": "eshkol", "display_name": "Eshkol"}
        self.notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
        self.answers: dict[str, Any] = {}
        client = nbclient.NotebookClient(
            self.notebook, timeout=60, allow_errors=True, resources={"metadata": {"path": str(folder)}}
        )
        asyncio.run(self._execute(client))

    async def _execute(self, client: Any) -> None:
        async with client.async_setup_kernel():
            *others, last = self.notebook.cells
            for number, cell in enumerate(others):
                await client.async_execute_cell(cell, number)
            await self._ask(client)
            running = asyncio.create_task(client.async_execute_cell(last, len(others)))
            while not last.outputs:  # it has begun to write, and so it runs
                await asyncio.sleep(0.02)
            await client.km.interrupt_kernel()
            await running

    async def _ask(self, client: Any) -> None:
        kernel = client.kc

        async def answer(message: str) -> dict[str, Any]:
            while True:
                reply = await kernel.get_shell_msg(timeout=30)
                if reply["parent_header"]["msg_id"] == message:
                    found: dict[str, Any] = reply["content"]
                    return found

        questions = {
            "complete": kernel.complete("(+ 1 (square-o 3))", 14),
            "inspect": kernel.inspect("(square-of ", 11),
            "inspect form": kernel.inspect("(if #t 1)", 2),
            "inspect nothing": kernel.inspect("(nobody-has-this", 5),
            "whole": kernel.is_complete("(+ 1 2)"),
            "unfinished": kernel.is_complete('(f "a'),
            "invalid": kernel.is_complete("(+ 1 2))"),
        }
        for name, message in questions.items():
            self.answers[name] = await answer(message)

    def outputs(self, name: str) -> list[Any]:
        return list(self.notebook.cells[list(CELLS).index(name)].outputs)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    with pytest.MonkeyPatch.context() as patch:
        return Run(tmp_path_factory.mktemp("notebook"), patch)


def test_values_and_what_is_written(run: Run) -> None:
    assert run.outputs("definition") == []
    streams = {out["name"]: out["text"] for out in run.outputs("value") if out["output_type"] == "stream"}
    assert streams == {"stdout": "first\n", "stderr": "λ"}
    assert run.outputs("value")[-1]["data"] == {"text/plain": "(1 4 9)"}
    assert run.outputs("value")[-1]["execution_count"] == 2
    assert run.outputs("after")[0]["data"] == {"text/plain": "1\ntwo"}


def test_an_error_has_its_caret_and_colours(run: Run) -> None:
    (error,) = run.outputs("error")
    assert error["output_type"] == "error"
    assert error["ename"] == "SchemeError"
    assert error["evalue"] == "car: expected a pair as argument 1, but got 5"
    text = "\n".join(error["traceback"])
    assert "<cell 3>:2:8" in text
    assert "\x1b[31m               ^~~~~~~" in text
    assert ".py" not in text
    assert run.outputs("syntax")[0]["ename"] == "UnfinishedInput"


def test_pictures_are_shown_inline(run: Run) -> None:
    first, second = run.outputs("picture")
    assert base64.b64decode(first["data"]["image/png"]) == png()
    assert second["data"]["image/svg+xml"] == SVG
    assert run.outputs("markdown")[0]["data"]["text/markdown"] == "# hello"


def test_an_interrupt_ends_a_cell(run: Run) -> None:
    written, error = run.outputs("interrupt")
    assert written["text"] == "begun\n"
    assert error["ename"] == "KeyboardInterrupt"


def test_completion(run: Run) -> None:
    answer = run.answers["complete"]
    assert answer["matches"] == ["square-of"]
    assert (answer["cursor_start"], answer["cursor_end"]) == (6, 14)


def test_inspection(run: Run) -> None:
    assert run.answers["inspect"]["data"]["text/plain"].splitlines()[:2] == ["(square-of x)", "x times x"]
    assert run.answers["inspect form"]["found"]
    assert not run.answers["inspect nothing"]["found"]


@pytest.mark.parametrize(
    ("name", "status"), [("whole", "complete"), ("unfinished", "incomplete"), ("invalid", "invalid")]
)
def test_is_complete(run: Run, name: str, status: str) -> None:
    assert run.answers[name]["status"] == status


# ---- installing ------------------------------------------------------------------------------------------------------


def test_install(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["jupyter", "install", "--prefix", str(tmp_path), "--name", "mine", "--display-name", "My Eshkol"]) == 0
    folder = tmp_path / "share" / "jupyter" / "kernels" / "mine"
    assert str(folder) in capsys.readouterr().out
    found = json.loads((folder / "kernel.json").read_text())
    assert found["argv"] == [sys.executable, "-m", "eshkol.bindings.notebook.kernel", "-f", "{connection_file}"]
    assert found["display_name"] == "My Eshkol"
    assert (folder / "logo-svg.svg").read_text().startswith("<svg")


def test_install_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["jupyter", "install", "--prefix", str(tmp_path), "--name", "no good!"]) == 2
    assert "no good!" in capsys.readouterr().err
    assert main(["jupyter", "install", "--user", "--prefix", "x"]) == 2
    assert "not allowed with" in capsys.readouterr().err


def test_without_jupyter_there_is_a_clear_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "eshkol.bindings.notebook.kernel", raising=False)
    monkeypatch.delattr("eshkol.bindings.notebook.kernel", raising=False)
    monkeypatch.setitem(sys.modules, "ipykernel.kernelapp", None)
    for command in (["install"], ["run", "-f", "nowhere.json"]):
        assert main(["jupyter", *command]) == 1
        assert "pip install 'eshkol[notebook]'" in capsys.readouterr().err


@pytest.mark.parametrize("command", [[], ["install"], ["run"]])
def test_help(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["jupyter", *command, "--help"]) == 0
    assert f"usage: eshkol {' '.join(['jupyter', *command])}" in capsys.readouterr().out


# ---- pictures --------------------------------------------------------------------------------------------------------


def test_pictures_by_their_bytes(tmp_path: Path) -> None:
    assert picture(png()) == {"image/png": base64.b64encode(png()).decode()}
    assert picture(b"\xff\xd8\xff\xe0") == {"image/jpeg": base64.b64encode(b"\xff\xd8\xff\xe0").decode()}
    assert picture(SVG) == {"image/svg+xml": SVG}
    path = tmp_path / "p.png"
    path.write_bytes(png(7))
    assert picture(str(path)) == picture(png(7))
    for wrong, words in ((b"text", "4 bytes are no picture"), (3, "a int is no picture"), ("no.png", "cannot read no")):
        with pytest.raises(EshkolError, match=words):
            picture(wrong)


def test_a_tensor_is_a_picture() -> None:
    data = base64.b64decode(picture(ek.ones((2, 3, 3)))["image/png"])
    assert struct.unpack(">II", data[16:24]) == (3, 2)
    with pytest.raises(EshkolError, match="a picture is height × width × 3"):
        picture(ek.ones((2, 2, 2)))


def test_objects_that_show_themselves() -> None:
    class Table:
        def _repr_html_(self) -> str:
            return "<b>t</b>"

        def _repr_png_(self) -> bytes:
            return png()

    assert bundle_of(Table()) == {"text/html": "<b>t</b>", **picture(png())}
    assert bundle_of(3) == {}
    assert bundle_of(Table) == {}


@pytest.mark.slow
def test_figures_of_matplotlib() -> None:
    figures = pytest.importorskip("matplotlib.figure")
    figure = figures.Figure(figsize=(1, 1))
    assert base64.b64decode(bundle_of(figure)["image/png"]).startswith(b"\x89PNG")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    pyplot.plot([1, 2])
    (data,) = display.open_figures()
    assert data.startswith(b"\x89PNG")
    assert pyplot.get_fignums() == []


def test_where_there_is_no_notebook_that_is_told(tmp_path: Path) -> None:
    with pytest.raises(EshkolError, match="display-image: there is no notebook"):
        ek.eval(f'(display-image "{SVG}")'.replace('"http://www.w3.org/2000/svg"', "'x'"))
    assert display.publisher is None


def test_colours_of_errors_that_are_not_eshkols() -> None:
    assert coloured(ValueError("no"))[1:] == ["no"]
    assert "interrupted" in coloured(KeyboardInterrupt("interrupted"))[0]
