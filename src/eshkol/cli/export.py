"""The command `eshkol export web`: a saved model as a folder of static files, to be tried in a browser.

Everything heavy is imported by the command that runs.
"""

from __future__ import annotations

import argparse
from typing import Any

from eshkol.cli.checkpoints import told
from eshkol.cli.usage import UsageError
from eshkol.web import KINDS

EPILOG = """\
examples:
  eshkol export web digits.eskpt -o site/ --input 1x1x28x28   a sheet to draw digits on
  eshkol export web gpt.eskpt -o site/ --tokenizer letters.json   a page that writes text
  python -m http.server -d site                               look at it: http://localhost:8000"""


def add_commands(commands: Any) -> None:
    web = commands.add_parser(
        "web",
        help="write a model as a page: WebAssembly and a little JavaScript in a folder",
        description="Write the model of a checkpoint as a folder of static files. A GPT gets a page that writes text, "
        "a model of one square picture with ten scores a sheet to draw digits on, any other a page with its inputs "
        "and outputs.",
        epilog=EPILOG,
    )
    web.add_argument("model", metavar="MODEL", help="an .eskpt file that says how its model is made")
    web.add_argument("-o", "--output", required=True, metavar="FOLDER", help="the folder to write")
    web.add_argument("--page", choices=KINDS, help="which page, instead of the one that the model's kind gets")
    web.add_argument("--input", metavar="SHAPE", help="the shape of the model's input, such as 1x1x28x28 or int64:1x16")
    web.add_argument("--tokenizer", metavar="FILE", help="the tokenizer of a GPT, as its `save` has written it")
    web.add_argument("--title", help="the title of the page")
    web.add_argument("--force", action="store_true", help="put the files into a folder that is not empty")
    web.set_defaults(run=told(_web))


def _web(options: argparse.Namespace) -> int | None:
    from pathlib import Path

    from eshkol.web.pages import page_of
    from eshkol.web.site import check_target, write_site

    shape, dtype = _shape(options.input)
    check_target(Path(options.output).absolute(), force=options.force)  # before anything takes time
    page = page_of(options.model, kind=options.page, shape=shape, dtype=dtype, tokenizer=options.tokenizer)
    site = write_site(page, options.output, title=options.title, force=options.force)
    print(f"{options.output}: the page '{page.kind}'")
    for name, size in site.sizes.items():
        print(f"  {name:<12}{size:>12,} bytes")
    if site.without_gpu is not None:
        print(f"  on a browser's GPU it does not run: {site.without_gpu}")
    print(f"to look at it: python -m http.server -d {options.output}")
    return None


def _shape(text: str | None) -> tuple[tuple[int, ...] | None, str | None]:
    """A shape as the command line has it: 1x28x28, or with a dtype in front: int64:1x16."""
    if text is None:
        return None, None
    dtype, colon, extents = text.rpartition(":")
    words = extents.split("x")
    if not all(w.isdecimal() and int(w) > 0 for w in words) or (colon and not dtype.isidentifier()):
        raise UsageError(f"--input is a shape such as 1x1x28x28 or int64:1x16, not '{text}'", "eshkol export web")
    return tuple(map(int, words)), dtype or None
