"""The few shapes of which the figures consist, as SVG text whose attributes and contents are always escaped.

Places along x are percentages of the figure's width and places along y are pixels, so that a figure fits any window
without its text growing or shrinking. Colors are classes; the style sheet gives each its light and its dark value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup, escape

CURVE_WIDTH = 1000


def element(name: str, *children: str, **attributes: object) -> Markup:
    """One element; `_` in attribute names becomes `-`, a trailing `_` is dropped, None leaves the attribute out."""
    pairs = Markup("").join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), value)
        for key, value in attributes.items()
        if value is not None
    )
    inside = Markup("").join(escape(child) for child in children)
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), pairs, inside)


def group(*children: str, title: str | None = None, **attributes: object) -> Markup:
    """Shapes that belong together, with the words a reader hears or sees when pointing at them."""
    inside = children if title is None else (element("title", title), *children)
    return element("g", *inside, **attributes)


def percent(share: float) -> str:
    """A share of the width as an SVG length."""
    return f"{share * 100:.3f}%"


def text(x: float, y: float, words: str, **attributes: object) -> Markup:
    """Words at a place; `x` is a share of the width, `y` is in pixels."""
    return element("text", words, x=percent(x), y=f"{y:g}", **attributes)


def line(x1: float, y1: float, x2: float, y2: float, **attributes: object) -> Markup:
    """A straight line."""
    return element("line", x1=percent(x1), y1=f"{y1:g}", x2=percent(x2), y2=f"{y2:g}", **attributes)


def box(x: float, y: float, width: float, height: float, **attributes: object) -> Markup:
    """A rectangle; `x` and `width` are shares of the width."""
    return element("rect", x=percent(x), y=f"{y:g}", width=percent(max(0.0, width)), height=f"{height:g}", **attributes)


def dot(x: float, y: float, radius: float, **attributes: object) -> Markup:
    """A circle that stays round at any width."""
    return element("circle", cx=percent(x), cy=f"{y:g}", r=f"{radius:g}", **attributes)


def pill(x: float, y: float, width: float, height: float, **attributes: object) -> Markup:
    """A rectangle with round ends around a place; `x` is a share of the width, all else is in pixels."""
    place = {"x": percent(x), "y": f"{y:g}", "width": f"{width:g}", "height": f"{height:g}", "rx": f"{height / 2:g}"}
    return element("rect", **place, transform=f"translate({-width / 2:g} 0)", **attributes)


def curve(
    points: Sequence[tuple[float, float]], top: float, height: float, *, filled: bool = False, **attributes: object
) -> Markup:
    """A line through points (share of the width, share of the height from below), or the area under it."""
    steps = [f"{x * CURVE_WIDTH:.1f} {(1 - y) * height:.1f}" for x, y in points]
    if not steps:
        return Markup("")
    path = "M" + "L".join(steps)
    if filled:
        path += f"L{points[-1][0] * CURVE_WIDTH:.1f} {height:g}L{points[0][0] * CURVE_WIDTH:.1f} {height:g}Z"
    shape = element("path", d=path, vector_effect="non-scaling-stroke", **attributes)
    return element(
        "svg",
        shape,
        x="0",
        y=f"{top:g}",
        width="100%",
        height=f"{height:g}",
        viewBox=f"0 0 {CURVE_WIDTH} {height:g}",
        preserveAspectRatio="none",
        overflow="visible",
    )


def picture(shapes: Iterable[str], height: float, description: str, css_class: str = "") -> Markup:
    """A whole figure, with a sentence that describes it."""
    return element(
        "svg",
        *shapes,
        width="100%",
        height=f"{height:g}",
        role="img",
        aria_label=description,
        class_=f"figure {css_class}".strip(),
    )
