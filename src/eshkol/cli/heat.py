"""Heat maps of what was measured: tiles down, stages across, in text and as SVG.

Comes in: choices as they are kept ("rows=128 … stages=4 …") with their seconds, or why there are none. Goes out: a map
whose cells say how many times as long as the best they took. What was not tried is a dot, what failed a cross.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

ACROSS = "stages"
SHADES = ((1.02, "█"), (1.08, "▓"), (1.2, "▒"), (1.5, "░"), (float("inf"), " "))  # up to which ratio
UNTRIED, FAILED = "·", "✗"
GOOD, BAD = (26, 152, 80), (253, 231, 200)  # the colours of the best, and of what takes twice as long
CELL, LINE, MARGIN, LETTER = 64, 22, 8, 7  # pixels


def short(choice: str) -> str:
    """A choice without what is not worth saying."""
    return " ".join(word for word in choice.split() if word not in ("shares=0", "cluster=1"))


class HeatMap:
    """Ratios to the best, by what a choice is beside its stages, and by stages."""

    def __init__(self, seconds: Mapping[str, float], failed: Mapping[str, str]) -> None:
        best = min(seconds.values())
        self.cells: dict[tuple[str, int], float | None] = {}
        for choice in (*seconds, *failed):
            ratio = seconds[choice] / best if choice in seconds else None
            self.cells[_split(choice)] = ratio
        self.columns = sorted({stages for _, stages in self.cells})
        least = {row: min((r or 1e9) for (other, _), r in self.cells.items() if other == row) for row, _ in self.cells}
        self.rows = sorted(least, key=least.__getitem__)

    def text(self) -> str:
        """The map for a terminal."""
        side = max(map(len, self.rows))
        lines = [f"{ACROSS:>{side}}" + "".join(f"{stages:>8}" for stages in self.columns)]
        for row in self.rows:
            lines.append(f"{row:>{side}}" + "".join(f"{self._cell(row, stages):>8}" for stages in self.columns))
        return "\n".join(lines)

    def _cell(self, row: str, stages: int) -> str:
        ratio = self.cells.get((row, stages), UNTRIED)
        if isinstance(ratio, str):
            return ratio
        if ratio is None:
            return FAILED
        return f"{next(shade for most, shade in SHADES if ratio <= most)} {ratio:.2f}"

    def svg(self, title: str) -> str:
        """The map as a picture."""
        side = MARGIN + LETTER * max(map(len, (*self.rows, ACROSS)))
        width = max(side + CELL * len(self.columns) + MARGIN, 2 * MARGIN + LETTER * len(title))
        height = LINE * (len(self.rows) + 2) + MARGIN
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="monospace" '
            'font-size="12">',
            f'<rect width="{width}" height="{height}" fill="white"/>',
            f'<text x="{MARGIN}" y="{LINE - 6}" font-weight="bold">{escape(title)}</text>',
            _word(side - MARGIN, 1, ACROSS, "end"),
        ]
        for number, stages in enumerate(self.columns):
            parts.append(_word(side + CELL * number + CELL // 2, 1, str(stages), "middle"))
        for down, row in enumerate(self.rows, 2):
            parts.append(_word(side - MARGIN, down, row, "end"))
            for number, stages in enumerate(self.columns):
                ratio = self.cells.get((row, stages), UNTRIED)
                shown = ratio if isinstance(ratio, str) else FAILED if ratio is None else f"{ratio:.2f}"
                x, y = side + CELL * number, LINE * down
                parts.append(f'<rect x="{x}" y="{y}" width="{CELL - 2}" height="{LINE - 2}" fill="{_colour(ratio)}"/>')
                parts.append(_word(x + CELL // 2, down, shown, "middle"))
        return "\n".join([*parts, "</svg>", ""])


def _split(choice: str) -> tuple[str, int]:
    """What a choice is beside its stages, and these."""
    words = short(choice).split()
    stages = next(word for word in words if word.startswith(f"{ACROSS}="))
    return " ".join(word for word in words if word != stages), int(stages.partition("=")[2])


def _word(x: int, line: int, text: str, anchor: str) -> str:
    return f'<text x="{x}" y="{LINE * line + LINE - 7}" text-anchor="{anchor}">{escape(text)}</text>'


def _colour(ratio: float | str | None) -> str:
    if not isinstance(ratio, float):
        return "#eeeeee"
    share = min(ratio - 1.0, 1.0) ** 0.5
    return "#{:02x}{:02x}{:02x}".format(*(round(a + (b - a) * share) for a, b in zip(GOOD, BAD, strict=True)))
