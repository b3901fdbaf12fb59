"""HTML as a test reads it: elements by selector, and the text that a reader sees."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser

_VOID = frozenset({"input", "link", "meta", "br", "hr", "img", "use", "path", "rect", "circle", "line"})


class Element:
    """An element with what is inside it."""

    def __init__(self, tag: str, attributes: dict[str, str]) -> None:
        self.tag = tag
        self.attributes = attributes
        self.inside: list[Element | str] = []

    @property
    def text(self) -> str:
        """The text in it, with single spaces."""
        return " ".join("".join(self._texts()).split())

    def _texts(self) -> Iterator[str]:
        for part in self.inside:
            if isinstance(part, str):
                yield part
            else:
                yield from part._texts()

    def all(self, selector: str) -> list[Element]:
        """The elements inside that fit a selector: `tag`, `#id`, `.class` or `[name=value]`."""
        return [found for found in self._walk() if found._fits(selector)]

    def one(self, selector: str) -> Element:
        """The only element that fits a selector."""
        (found,) = self.all(selector)
        return found

    def __getitem__(self, name: str) -> str:
        return self.attributes[name]

    def _walk(self) -> Iterator[Element]:
        for part in self.inside:
            if isinstance(part, Element):
                yield part
                yield from part._walk()

    def _fits(self, selector: str) -> bool:
        if selector.startswith("#"):
            return self.attributes.get("id") == selector[1:]
        if selector.startswith("."):
            return selector[1:] in self.attributes.get("class", "").split()
        if selector.startswith("["):
            name, _, value = selector[1:-1].partition("=")
            return self.attributes.get(name) == value if value else name in self.attributes
        return self.tag == selector


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.stack = [Element("", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.stack[-1].inside.append(element)
        if tag not in _VOID:
            self.stack.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.stack[-1].inside.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            assert self.stack[-1].tag == tag, f"</{tag}> closes <{self.stack[-1].tag}>"
            self.stack.pop()

    def handle_data(self, data: str) -> None:
        self.stack[-1].inside.append(data)


def parse(html: str) -> Element:
    """The elements of a page or of a fragment, which must be well formed."""
    parser = _Parser()
    parser.feed(html)
    parser.close()
    assert len(parser.stack) == 1, f"<{parser.stack[-1].tag}> is left open"
    return parser.stack[0]
