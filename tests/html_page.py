"""A page of HTML as its texts, its attributes and its data, for tests of reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = frozenset({"meta", "link", "input", "br", "img", "hr"})


@dataclass
class HtmlPage(HTMLParser):
    """The parsed page.

    Attributes:
        texts: Text of each section by its identifier, with one blank between words.
        elements: Names and attributes of all elements.
        scripts: Contents of scripts by identifier, "" without one.
        open_tags: Elements that were not closed.
    """

    texts: dict[str, str] = field(default_factory=dict)
    elements: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    scripts: dict[str, str] = field(default_factory=dict)
    open_tags: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    @classmethod
    def of(cls, html: str) -> HtmlPage:
        """Parse a page."""
        page = cls()
        page.feed(html)
        page.close()
        return page

    @property
    def identifiers(self) -> list[str]:
        """Identifiers of all elements, in order."""
        return [attributes["id"] for _, attributes in self.elements if "id" in attributes]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """See HTMLParser."""
        attributes = {name: value or "" for name, value in attrs}
        self.elements.append((tag, attributes))
        if tag not in VOID:
            self.open_tags.append((tag, attributes))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """See HTMLParser."""
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        """See HTMLParser."""
        opened, _ = self.open_tags.pop()
        assert opened == tag, f"{opened} is closed by {tag}"

    def handle_data(self, data: str) -> None:
        """See HTMLParser."""
        tag, attributes = self.open_tags[-1] if self.open_tags else ("", {})
        if tag == "script":
            self.scripts[attributes.get("id", "")] = data
        elif tag != "style":
            sections = [item["id"] for name, item in self.open_tags if name == "section"]
            section = sections[-1] if sections else ""
            self.texts[section] = " ".join((self.texts.get(section, "") + " " + data).split())
