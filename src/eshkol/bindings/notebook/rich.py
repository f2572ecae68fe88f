"""Values as notebooks show them: bundles of MIME types.

Comes in: a Python value, the bytes or the path of a picture. Goes out: what the messages of Jupyter hold:
`{"image/png": base64, …}`.
"""

from __future__ import annotations

import io
import sys
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

from eshkol.errors import EshkolError

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
