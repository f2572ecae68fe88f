"""Flame graphs: stacks as rectangles, as wide as the time in them, callers below those that they call.

Comes in: what was found. Goes out: a tree of what was called by what, and it as SVG, where a pointer over a rectangle
shows its line and share.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import Any

from eshkol.profiling.findings import Findings
from eshkol.profiling.frames import Frame

WIDTH, ROW, LEAST, LETTER = 1200, 18, 0.4, 6.6  # pixels; the narrowest rectangle that is drawn; of a letter


@dataclass
class Flame:
    """A place in stacks: the time in it, and what it called."""

    name: str
    where: str
    weight: int = 0
    inner: dict[Frame, Flame] = field(default_factory=dict)

    def data(self, least: float) -> dict[str, Any]:
        """As JSON has it, without what takes less."""
        kept = [f.data(least) for f in sorted(self.inner.values(), key=lambda f: -f.weight) if f.weight >= least]
        return {"name": self.name, "where": self.where, "weight": self.weight, "inner": kept}

    @property
    def depth(self) -> int:
        return 1 + max((f.depth for f in self.inner.values()), default=0)


def flames(profile: Findings) -> Flame:
    """The tree of all samples."""
    whole = Flame("all", "")
    for stack, weight in profile.stacks.items():
        at = whole
        at.weight += weight
        for frame in stack:
            at = at.inner.setdefault(frame, Flame(frame.name, frame.where))
            at.weight += weight
    return whole


def colour(name: str) -> str:
    """One of warm colours, the same for the same name."""
    number = sum(ord(c) * (k + 7) for k, c in enumerate(name))
    return f"hsl({18 + number % 38},{62 + number % 23}%,{58 + number % 17}%)"


def svg(profile: Findings) -> str:
    """The flame graph as a picture of its own."""
    whole = flames(profile)
    height = (whole.depth + 2) * ROW
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        'font-family="ui-monospace,monospace" font-size="11">',
        '<rect width="100%" height="100%" fill="#fffdf8"/>',
        f'<text x="8" y="14">{profile.sampled * 1e-9:.2f} s of processor time in {len(profile.samples)} samples</text>',
    ]

    def draw(flame: Flame, left: float, level: int) -> None:
        width = WIDTH * flame.weight / (whole.weight or 1)
        if width < LEAST:
            return
        top, told = height - (level + 1) * ROW, f"{flame.name} {flame.where}".strip()
        text = f"{flame.name}  {flame.where}".strip()[: max(0, int((width - 6) / LETTER))]
        parts.append(
            f'<g><title>{escape(told)}: {flame.weight / (whole.weight or 1):.1%}</title><rect x="{left:.2f}" y="{top}" '
            f'width="{max(width - 0.5, 0.1):.2f}" height="{ROW - 1}" rx="1.5" fill="{colour(flame.name)}"/>'
            + (f'<text x="{left + 3:.2f}" y="{top + 12}">{escape(text)}</text>' if len(text) > 2 else "") + "</g>"
        )  # fmt: skip
        for inner in sorted(flame.inner.values(), key=lambda f: -f.weight):
            draw(inner, left, level + 1)
            left += WIDTH * inner.weight / (whole.weight or 1)

    draw(whole, 0.0, 0)
    return "\n".join([*parts, "</svg>\n"])
