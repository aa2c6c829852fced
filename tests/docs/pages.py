"""Markdown pages of the repository: their code blocks and their links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
RUNNABLE = ("python", "console")
_NOT_RUN = re.compile(r"<!-- not run: (.+?) -->", re.DOTALL)
_COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n", re.MULTILINE)


@dataclass(frozen=True)
class Code:
    """A code block.

    Attributes:
        line: Number of its first line in the page.
        language: First word behind the fence; empty if there is none.
        has_figures: Whether "figures" stands behind the language: numbers differ from run to run.
        text: The code; of a console block commands and outputs.
        output: Text that Python code prints according to the page.
        not_run: Reason why the tests leave the block out; empty if they run it.
    """

    line: int
    language: str
    has_figures: bool
    text: str
    output: str = ""
    not_run: str = ""

    @property
    def is_run(self) -> bool:
        """Whether the tests run the block."""
        return self.language in RUNNABLE and not self.not_run


@dataclass(frozen=True)
class Command:
    """A command of a console block, with the output that the page shows for it."""

    text: str
    output: str


def parse_tokens(page: str) -> list[Token]:
    """Parse Markdown as GitHub reads it, as far as these pages use it."""
    return MarkdownIt("commonmark").enable("table").parse(page)


def code_blocks(page: str) -> list[Code]:
    """Return the fenced code of a page; the text behind Python code is its output and no block of its own.

    Args:
        page: Text of the page in Markdown.
    """
    blocks: list[Code] = []
    reason = ""
    for token in parse_tokens(page):
        if token.type == "fence":
            block = _code_block(token, reason)
            if block.language == "text":
                _append_output(blocks, block)
            else:
                blocks.append(block)
        if token.type not in {"paragraph_open", "paragraph_close"}:
            marker = _NOT_RUN.search(token.content) if token.type == "html_block" else None
            reason = marker.group(1).strip() if marker else ""
    return blocks


def commands(block: Code) -> list[Command]:
    """Split a console block at its prompts.

    Args:
        block: A block of the language "console".
    """
    prompts = list(_COMMAND.finditer(block.text))
    assert prompts, f"line {block.line}: a console block has a command behind '$ '"
    assert prompts[0].start() == 0, f"line {block.line}: a console block begins with '$ '"
    ends = [*(prompt.start() for prompt in prompts[1:]), len(block.text)]
    return [
        Command(prompt.group(1), block.text[prompt.end() : end])
        for prompt, end in zip(prompts, ends, strict=True)
    ]


def indented_code(page: str) -> list[int]:
    """Return the lines at which code without a fence begins."""
    return [_line(token) for token in parse_tokens(page) if token.type == "code_block"]


def links(page: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the target of each link and image of a page."""
    for token in parse_tokens(page):
        for child in token.children or ():
            target = child.attrGet({"link_open": "href", "image": "src"}.get(child.type, ""))
            if target is not None:
                yield _line(token), str(target)


def anchors(page: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and MyST name them."""
    tokens = parse_tokens(page)
    headings = (following.content for token, following in pairwise(tokens) if token.type == "heading_open")
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def _code_block(token: Token, reason: str) -> Code:
    language, *words = token.info.split() or [""]
    if language.startswith("{"):  # a directive of Sphinx, with arguments
        words = []
    assert words in ([], ["figures"]), f"line {_line(token)}: unknown words {words} behind {language}"
    return Code(_line(token) + 1, language, bool(words), token.content, not_run=reason)


def _append_output(blocks: list[Code], text: Code) -> None:
    assert blocks, f"line {text.line}: a text block is the output of the Python before it"
    code = blocks[-1]
    assert code.language == "python", f"line {text.line}: a text block is the output of the Python before it"
    assert not code.output, f"line {text.line}: one Python block has one output"
    blocks[-1] = replace(code, output=text.text, has_figures=text.has_figures)


def _line(token: Token) -> int:
    assert token.map is not None
    return token.map[0] + 1
