"""The words, numbers, quoted texts and marks of a text of passes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from intarsia.transform.pass_syntax.source_text import SourceText
from intarsia.transform.pass_text import NAME


class TokenKind(Enum):
    """What a token is."""

    NAME = auto()
    NUMBER = auto()
    STRING = auto()
    MARK = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class Token:
    """A part of a text that has a meaning.

    Attributes:
        kind: Kind of the token.
        text: Its characters; of a quoted text those between the quotation marks, without escapes.
        position: Index of its first character.
    """

    kind: TokenKind
    text: str
    position: int

    def __str__(self) -> str:
        """The token in an error message."""
        return "the end of the text" if self.kind is TokenKind.END else repr(self.text)


_MARKS: Final = "{}[]=,"
_SPACE: Final = re.compile(r"\s*")
_NUMBER: Final = re.compile(r"[-+]?(?:\d+(?:_\d+)*(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|[-+]inf\b")
_STRING: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|' + r"'((?:[^'\\]|\\.)*)'", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def tokens(source: SourceText) -> Iterator[Token]:
    """Yield the tokens of a text, and a last one for its end.

    Raises:
        PassTextError: A character begins no token, or a quotation mark is not closed.
    """
    text, position = source.text, 0
    while True:
        position = _end_of(_SPACE, text, position)
        if position == len(text):
            yield Token(TokenKind.END, "", position)
            return
        token, position = _token(source, position)
        yield token


def _token(source: SourceText, position: int) -> tuple[Token, int]:
    """Return the token at a position, and the position after it."""
    text = source.text
    if text[position] in _MARKS:
        return Token(TokenKind.MARK, text[position], position), position + 1
    for kind, pattern in ((TokenKind.NAME, NAME), (TokenKind.NUMBER, _NUMBER)):
        if match := pattern.match(text, position):
            return Token(kind, match.group(), position), match.end()
    if match := _STRING.match(text, position):
        content = match.group(1) if match.group(1) is not None else match.group(2)
        return Token(TokenKind.STRING, _unescaped(content), position), match.end()
    raise source.error(position, *_unreadable(text[position]))


def _unreadable(character: str) -> tuple[str, str]:
    """Return why a character begins no token, and what to write."""
    match character:
        case '"' | "'":
            return f"the quotation mark {character} is not closed", f"add {character} behind the text"
        case "(" | ")":
            return f"found {character!r}", "options stand in braces: FoldConstant{max_bytes=1024}"
        case "<":
            return "a value between angle brackets cannot be read", "make this pass in Python"
        case _:
            return f"found {character!r}, which begins no name or value", 'put text in quotation marks: "..."'


def _unescaped(content: str) -> str:
    def plain(match: re.Match[str]) -> str:
        code, character = match.groups()
        return chr(int(code, 16)) if code else _ESCAPED.get(character, character)

    return _ESCAPE.sub(plain, content)


def _end_of(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    assert match is not None  # the pattern matches the empty text
    return match.end()
