"""The folder of a page: index.html, style.css, page.js, eshkol.js and model.wasm, for GPUs gpu.js and model.webgpu.

Comes in: a `Page`. Goes out: the folder, whole or not at all: it is written beside its place and then moved there.
Into a folder that holds something, files are only put where that is asked for; others in it stay.
"""

from __future__ import annotations

import html
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eshkol.errors import BackendUnavailable, EshkolError
from eshkol.tensors.export_pages import wasm_module
from eshkol.tensors.gpu_kernels import webgpu_kernels
from eshkol.web.pages import Page, settings_text

HERE = Path(__file__).parent
PARTS = HERE / "pages"
TITLES = {"digits": "Digits", "text": "Text", "plain": "Model"}
MODULE, KERNELS = "model.wasm", "model.webgpu"


class SiteError(EshkolError):
    """A folder for a page that cannot be written."""


def eshkol_js() -> str:
    """The module that runs exported models."""
    return (HERE / "eshkol.js").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Site:
    """What was written: the sizes of the files, by their names, and why there are no kernels for a GPU, if so."""

    sizes: Mapping[str, int]
    without_gpu: str | None


def files_of(page: Page, title: str) -> tuple[dict[str, bytes], str | None]:
    """The files of a page, by name, of which the last names the others; and why there are none for a GPU, if so."""
    module, _ = wasm_module(page.function, page.args, Path(MODULE).stem)
    kernels, reason = _kernels(page)
    settings = dict(page.settings) | ({"gpu": KERNELS} if kernels else {})
    shown = (PARTS / f"{page.kind}.html").read_text(encoding="utf-8")
    shown = shown.replace("{{title}}", html.escape(title)).replace("{{settings}}", settings_text(settings))
    return {
        MODULE: module,
        **({KERNELS: kernels, "gpu.js": (HERE / "gpu.js").read_bytes()} if kernels else {}),
        "eshkol.js": eshkol_js().encode(),
        "page.js": (PARTS / f"{page.kind}.js").read_bytes(),
        "style.css": (PARTS / "style.css").read_bytes(),
        "index.html": shown.encode(),
    }, reason


def _kernels(page: Page) -> tuple[bytes, str | None]:
    """The kernels for a GPU; or none, and what of the model pages compute with WebAssembly alone."""
    try:
        return webgpu_kernels(page.function, page.args, Path(KERNELS).stem), None
    except BackendUnavailable as error:
        return b"", error.message


def write_site(page: Page, folder: str | os.PathLike[str], *, title: str | None = None, force: bool = False) -> Site:
    """Write a page's folder."""
    target = Path(folder).absolute()
    check_target(target, force=force)
    files, reason = files_of(page, TITLES[page.kind] if title is None else title)
    try:
        _write(files, target)
    except OSError as error:
        raise SiteError(f"'{target}' cannot be written: {error.strerror or error}") from None
    return Site({name: len(raw) for name, raw in files.items()}, reason)


def check_target(target: Path, *, force: bool) -> None:
    """Refuse a place where no folder can be, or one that holds something already."""
    try:
        if target.is_symlink() or (target.exists() and not target.is_dir()):
            raise SiteError(f"'{target}' is there already, and no folder")
        if not target.parent.is_dir():
            raise SiteError(f"there is no folder '{target.parent}' to put '{target.name}' into")
        if not force and target.is_dir() and any(target.iterdir()):
            raise SiteError(f"the folder '{target}' is not empty", hint="--force puts the page's files into it")
    except OSError as error:
        raise SiteError(f"'{target}' cannot be read: {error.strerror or error}") from None


def _write(files: Mapping[str, bytes], target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as work:
        made = Path(work) / "site"
        made.mkdir()
        for name, raw in files.items():
            _put(made / name, raw)
        if not target.exists() or not any(target.iterdir()):
            made.replace(target)  # also over an empty folder
            return
        for name in files:
            if (target / name).is_dir():
                raise SiteError(f"'{target / name}' is a folder, where a file of the page belongs")
        for name in files:
            shutil.move(made / name, target / name)


def _put(file: Path, raw: bytes) -> Any:
    file.write_bytes(raw)
    file.chmod(0o644)
