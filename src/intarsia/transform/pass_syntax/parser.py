"""The grammar of a text of passes.

    passes  := [pass {"," pass}]
    pass    := name ["{" [option {"," option}] "}"]
    option  := name "=" value
    value   := pass | number | text | "[" [value {"," value}] "]"

A comma may stand before a closing bracket. A name may be a text in quotation marks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from intarsia.transform.pass_syntax.source_text import PassTextError, SourceText
from intarsia.transform.pass_syntax.syntax_tree import (
    ListNode,
    NamedNode,
    Node,
    NumberNode,
    OptionNode,
    StringNode,
)
from intarsia.transform.pass_syntax.token import Token, TokenKind, tokens

DEEPEST: Final = 200
"""Largest number of brackets around a value; Python's stack is too small for arbitrary nesting."""

T = TypeVar("T")


def parse_nodes(source: SourceText) -> tuple[Node, ...]:
    """Return the passes of a text, which commas separate.

    Raises:
        PassTextError: The text breaks the grammar.
    """
    return _Parser(source).passes()


class _Parser:
    def __init__(self, source: SourceText) -> None:
        self._source = source
        self._tokens = tuple(tokens(source))
        self._next = 0
        self._depth = 0

    def passes(self) -> tuple[Node, ...]:
        return self._items("", self._value)

    def _value(self) -> Node:
        token = self._take()
        match token.kind:
            case TokenKind.NUMBER:
                return NumberNode(token.position, self._number(token))
            case TokenKind.NAME | TokenKind.STRING:
                return self._named(token)
            case TokenKind.MARK if token.text == "[":
                return ListNode(token.position, self._bracketed("]", self._value))
            case _:
                raise self._unexpected(token, "a pass or a value")

    def _named(self, token: Token) -> Node:
        if self._tokens[self._next].text == "{" and self._tokens[self._next].kind is TokenKind.MARK:
            self._take()
            return NamedNode(token.position, token.text, self._bracketed("}", self._option), has_braces=True)
        if token.kind is TokenKind.STRING:
            return StringNode(token.position, token.text)
        return NamedNode(token.position, token.text)

    def _option(self) -> OptionNode:
        name = self._take()
        if name.kind is not TokenKind.NAME:
            raise self._unexpected(name, "the name of an option")
        equal = self._take()
        if equal.text != "=" or equal.kind is not TokenKind.MARK:
            raise self._unexpected(equal, f"'=' and a value after {name.text}")
        return OptionNode(name.position, name.text, self._value())

    def _bracketed(self, closing: str, item: Callable[[], T]) -> tuple[T, ...]:
        """Return what stands between brackets, of which the first is taken already."""
        self._depth += 1
        if self._depth > DEEPEST:
            position = self._tokens[self._next - 1].position
            raise self._source.error(position, f"more than {DEEPEST} brackets are open here")
        items = self._items(closing, item)
        self._depth -= 1
        return items

    def _items(self, closing: str, item: Callable[[], T]) -> tuple[T, ...]:
        """Return items up to a closing bracket, or up to the end of the text if that is empty."""
        items: list[T] = []
        while not self._closes(closing):
            items.append(item())
            token = self._tokens[self._next]
            if token.kind is TokenKind.MARK and token.text == ",":
                self._take()
            elif not self._at(closing):
                raise self._unexpected(token, f"',' or {_mark(closing)}")
        return tuple(items)

    def _closes(self, closing: str) -> bool:
        """Take the closing bracket if it is next."""
        if is_closed := self._at(closing):
            self._take()
        return is_closed

    def _at(self, closing: str) -> bool:
        token = self._tokens[self._next]
        return token.text == closing and token.kind in (TokenKind.MARK, TokenKind.END)

    def _take(self) -> Token:
        token = self._tokens[self._next]
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token

    def _number(self, token: Token) -> int | float:
        try:
            return int(token.text)
        except ValueError:
            return float(token.text)

    def _unexpected(self, token: Token, expected: str) -> PassTextError:
        return self._source.error(token.position, f"found {token}, expected {expected}")


def _mark(closing: str) -> str:
    return repr(closing) if closing else "the end of the text"
