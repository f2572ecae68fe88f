"""Values and errors as notebooks show them: bundles of MIME types, and text with colours.

Comes in: a Python value, the bytes or the path of a picture, an error. Goes out: what the messages of Jupyter hold:
`{"image/png": base64, …}`, lines with ANSI colours.
"""

from __future__ import annotations

import io
import sys
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

from eshkol.errors import EshkolError, Interrupted

Bundle = dict[str, Any]

METHODS = {  # what objects that can show themselves have, and what it gives
    "_repr_html_": "text/html",
    "_repr_markdown_": "text/markdown",
    "_repr_latex_": "text/latex",
    "_repr_svg_": "image/svg+xml",
    "_repr_png_": "image/png",
    "_repr_jpeg_": "image/jpeg",
}
PICTURES = {  # by how their bytes begin
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"<svg": "image/svg+xml",
    b"<?xml": "image/svg+xml",
}

RESET, BOLD, DIM, RED, GREEN, CYAN = "\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[36m"


def bundle_of(value: Any) -> Bundle:
    """What a value says of itself, besides plain text; nothing for most of them."""
    found: Bundle = {}
    whole = _asked(value, "_repr_mimebundle_")
    if whole is not None:
        found.update(whole[0] if isinstance(whole, tuple) else whole)
    for method, kind in METHODS.items():
        shown = _asked(value, method)
        if shown is not None:
            found.setdefault(kind, shown[0] if isinstance(shown, tuple) else shown)
    if not found and callable(getattr(value, "savefig", None)):
        found["image/png"] = figure_bytes(value)
    return {kind: _encoded(data) for kind, data in found.items()}


def _asked(value: Any, method: str) -> Any:
    ask: Callable[[], Any] | None = getattr(type(value), method, None) and getattr(value, method)
    return None if ask is None else ask()


def figure_bytes(figure: Any) -> bytes:
    """A figure of matplotlib as PNG."""
    file = io.BytesIO()
    figure.savefig(file, format="png", bbox_inches="tight")
    return file.getvalue()


def _encoded(data: Any) -> Any:
    return b64encode(data).decode() if isinstance(data, bytes) else data


def picture(what: Any) -> Bundle:
    """The bytes of a picture, its path, the text of an SVG, a tensor of pixels, or something that draws itself."""
    if isinstance(what, str) and what.lstrip().startswith("<"):
        return {"image/svg+xml": what}
    if isinstance(what, (str, Path)):
        try:
            what = Path(what).read_bytes()
        except OSError as error:
            raise EshkolError(f"display-image: cannot read {what}: {(error.strerror or str(error)).lower()}") from None
    if isinstance(what, _tensors()):
        from eshkol.bindings.pictures import png

        what = png(what)
    if not isinstance(what, (bytes, bytearray)):
        found = bundle_of(what)
        if not any(kind.startswith("image/") for kind in found):
            raise EshkolError(
                f"display-image: a {type(what).__name__} is no picture",
                hint="give the bytes of a PNG, JPEG, GIF or SVG, the path of such a file, a tensor of pixels, "
                "or a figure of matplotlib",
            )
        return found
    data = bytes(what)
    kind = next((kind for start, kind in PICTURES.items() if data.lstrip().startswith(start)), None)
    if kind is None:
        raise EshkolError(
            f"display-image: these {len(data)} bytes are no picture", hint="PNG, JPEG, GIF and SVG can be shown"
        )
    return {kind: data.decode("utf-8", "replace") if kind == "image/svg+xml" else _encoded(data)}


def _tensors() -> tuple[type, ...]:
    """The class of tensors; nothing, where nothing has made one."""
    module = sys.modules.get("eshkol.tensors.value")
    return () if module is None else (module.Tensor,)


def coloured(error: BaseException) -> list[str]:
    """An error as lines with colours: the message, the line with its caret, who called whom, the hint."""
    if isinstance(error, Interrupted) or not isinstance(error, EshkolError):
        word = "interrupted" if isinstance(error, (Interrupted, KeyboardInterrupt)) else type(error).__name__
        lines = str(error).splitlines()
        return [f"{BOLD}{RED}{word}{RESET}", *map(_coloured_line, lines[1:] if lines[:1] == [word] else lines)]
    first, *rest = str(error).splitlines() or [type(error).__name__]
    return [f"{BOLD}{RED}error:{RESET} {BOLD}{first}{RESET}", *map(_coloured_line, rest)]


def _coloured_line(line: str) -> str:
    bare = line.strip()
    if bare.startswith("-->"):
        return f"{CYAN}{line}{RESET}"
    if bare and not bare.strip("^~"):
        return f"{RED}{line}{RESET}"
    if bare.startswith("hint:"):
        return f"{GREEN}{line}{RESET}"
    if line.startswith(("  in ", "  and ")):
        return f"{DIM}{line}{RESET}"
    return line
