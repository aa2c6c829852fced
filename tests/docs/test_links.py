"""Links between pages lead somewhere, and so do the paths that pages and source files name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.docs.pages import ROOT, anchors, links
from tests.each_case import each_case

PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]
)
SOURCES = sorted(
    path
    for folder in ("src", "tests", "benchmarks", "corpus", "examples", "checks")
    for path in ROOT.glob(f"{folder}/**/*.py")
)
_PATH = re.compile(r"`((?:docs|examples|src|tests|benchmarks|corpus)/[\w./-]*\w)/?`")
_PAGE = re.compile(r"\bdocs/[\w./-]+\.(?:md|svg)\b|\bdocs/decisions/\d{4}")


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    page = ROOT / name
    dead = [
        f"line {line}: {target}"
        for line, target in links(page.read_text())
        if not target.startswith(("http://", "https://", "mailto:")) and not leads_somewhere(page, target)
    ]
    assert not dead


def leads_somewhere(page: Path, target: str) -> bool:
    """Return whether a relative link from a page has a file, and the file the anchor."""
    path, _, anchor = target.partition("#")
    there = (page.parent / path).resolve() if path else page
    if not there.exists():
        return False
    return not anchor or anchor in anchors(there.read_text())


@each_case("name", [name for name in PAGES if name != "CHANGELOG.md"])
def test_paths_in_pages_exist(name: str) -> None:
    named = _PATH.findall((ROOT / name).read_text())
    assert not sorted({path for path in named if not (ROOT / path).exists()})


def test_pages_that_sources_name_exist() -> None:
    named = {(path, page) for path in SOURCES for page in _PAGE.findall(path.read_text())}
    dead = [
        f"{path.relative_to(ROOT)}: {page}" for path, page in sorted(named) if not list(ROOT.glob(f"{page}*"))
    ]
    assert named
    assert not dead


def test_pages_are_not_named_in_vain() -> None:
    """What the test above would find is found, when it is planted."""
    assert not leads_somewhere(ROOT / "README.md", "docs/" + "no_such_page.md")
    assert not leads_somewhere(ROOT / "README.md", "CONTRIBUTING.md#no-such-heading")
    assert leads_somewhere(ROOT / "README.md", "CONTRIBUTING.md#rules")
