"""A page as a test sees it: its elements, their texts, and whatever it would load or link to."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

LOADS = ("src", "href", "srcset", "action", "data", "poster", "xlink:href", "formaction", "ping", "background")
VOID = {"meta", "br", "img", "link", "input", "hr", "base", "source"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    inside: list["Element | str"] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The words inside, with single spaces."""
        words = "".join(one if isinstance(one, str) else f" {one.text} " for one in self.inside)
        return re.sub(r"\s+", " ", words).strip()

    def all(self, tag: str, css_class: str | None = None) -> list["Element"]:
        """The elements of a kind anywhere inside, in the order of the page."""
        found = []
        for one in self.inside:
            if isinstance(one, Element):
                if one.tag == tag and (css_class is None or css_class in one.attributes.get("class", "").split()):
                    found.append(one)
                found.extend(one.all(tag, css_class))
        return found

    def one(self, tag: str, css_class: str | None = None) -> "Element":
        (only,) = self.all(tag, css_class)
        return only


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Element("", {})
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self._open[-1].inside.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open[-1].inside.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self._open[-1].tag == tag, f"</{tag}> closes <{self._open[-1].tag}>"
            self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].inside.append(data)


def read(page: str) -> Element:
    """The page as a tree; an element that is not closed by its own end tag fails the test."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    assert len(reader._open) == 1, f"<{reader._open[-1].tag}> is never closed"
    return reader.root


def reaches_out(page: str) -> list[str]:
    """What a page would load or link to outside of itself."""
    found = [f"url({target})" for target in re.findall(r"url\(\s*['\"]?([^#'\")][^)]*)\)", page)]
    found += re.findall(r"@import[^;]*", page)
    return found + _targets(read(page))


def _targets(element: Element) -> list[str]:
    found = [
        f"<{element.tag} {name}={value}>"
        for name, value in element.attributes.items()
        if name in LOADS and not value.startswith("#")
    ]
    return found + [target for one in element.inside if isinstance(one, Element) for target in _targets(one)]
