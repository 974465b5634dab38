"""The plot of bench/gossip.py as SVG: three panels over the number of members, and the formulas as dashed lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log10
from typing import Any, Final
from xml.sax.saxutils import escape

Row = dict[str, Any]
WIDTH, HEIGHT = 300, 220  # of a panel
LEFT, TOP, GAP, FOOT = 48, 52, 56, 92
COLORS: Final = {0.1: "#1f77b4", 0.3: "#d62728"}
STYLE: Final = "font-family:sans-serif;font-size:11px"


class Panel:
    """One diagram: places for values, the axes, and the lines."""

    def __init__(self, at: int, title: str, highest: float, unit: str) -> None:
        self.x = LEFT + at * (WIDTH + GAP)
        self.title, self.highest, self.unit = title, highest, unit

    def place(self, members: float, value: float) -> tuple[float, float]:
        """Members on a logarithmic axis from 10 to 1,000, values from 0 to the highest."""
        return self.x + (log10(members) - 1) / 2 * WIDTH, TOP + HEIGHT * (1 - value / self.highest)

    def axes(self) -> list[str]:
        """The frame, the title, and the numbers of the axes."""
        parts = [
            f'<rect x="{self.x}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#888"/>',
            text(self.x, TOP - 10, self.title, weight="bold"),
            text(self.x + WIDTH / 2, TOP + HEIGHT + 32, "members", anchor="middle"),
        ]
        for members in (10, 30, 100, 300, 1_000):
            x, _ = self.place(members, 0)
            parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{TOP + HEIGHT}" stroke="#ddd"/>')
            parts.append(text(x, TOP + HEIGHT + 16, f"{members:,}", anchor="middle"))
        for step in range(5):
            value = self.highest * step / 4
            _, y = self.place(10, value)
            parts.append(f'<line x1="{self.x}" x2="{self.x + WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
            parts.append(text(self.x - 6, y + 4, f"{value:g}{self.unit}", anchor="end"))
        return parts

    def line(self, rows: Sequence[Row], value: Callable[[Row], float], loss: float, *, dashed: bool) -> list[str]:
        """One line over the groups with this loss; measured values have dots."""
        places = [self.place(row["members"], value(row)) for row in rows if row["loss"] == loss]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        parts = [f'<polyline points="{points}" fill="none" stroke="{COLORS[loss]}" stroke-width="1.6"{dash}/>']
        if not dashed:
            parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{COLORS[loss]}"/>' for x, y in places]
        return parts


def text(x: float, y: float, words: str, anchor: str = "start", weight: str = "normal") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}">{escape(words)}</text>'


def above(rows: Sequence[Row], *values: Callable[[Row], float]) -> float:
    """A round number above all values: the top of an axis."""
    most = max(value(row) for row in rows for value in values)
    step = 10 ** int(log10(most)) if most >= 1 else 1
    return next(step * factor for factor in (1, 1.2, 1.6, 2, 4, 6, 8, 10, 12) if step * factor >= most)


def drawn(rows: Sequence[Row]) -> str:
    """The whole plot."""
    panels: list[tuple[str, str, Callable[[Row], float], Callable[[Row], float] | None]] = [
        ("rounds until a gossip has reached its last member", "", of("rounds"), of("rounds_of_theory")),
        ("members that one gossip does not reach", " %", of("unreached", 100), of("unreached_of_theory", 100)),
        ("bytes a second that a member receives", "", of("bytes_per_member_s"), None),
    ]
    parts: list[str] = []
    for at, (title, unit, value, theory) in enumerate(panels):
        panel = Panel(at, title, above(rows, value, *([theory] if theory else [])), unit)
        parts += panel.axes()
        for loss in COLORS:
            parts += panel.line(rows, value, loss, dashed=False)
            if theory is not None:
                parts += panel.line(rows, theory, loss, dashed=True)
    width, height = LEFT + 3 * WIDTH + 2 * GAP + 16, TOP + HEIGHT + FOOT
    parts += legend(TOP + HEIGHT + 62)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" style="{STYLE}">'
    return "\n".join([head, f'<rect width="{width}" height="{height}" fill="#fff"/>', *parts, "</svg>"]) + "\n"


def of(name: str, factor: float = 1) -> Callable[[Row], float]:
    return lambda row: float(row[name]) * factor


def legend(y: float) -> list[str]:
    """What the lines are."""
    parts, x = [], float(LEFT)
    for loss, color in COLORS.items():
        for words, dash in ((f"{loss:.0%} of the frames lost", ""), ("the formula for it", ' stroke-dasharray="5 4"')):
            parts.append(f'<line x1="{x}" x2="{x + 30}" y1="{y}" y2="{y}" stroke="{color}" stroke-width="1.6"{dash}/>')
            parts.append(text(x + 36, y + 4, words))
            x += 190
    return parts
