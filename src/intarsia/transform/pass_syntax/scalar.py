"""Values without parts: numbers, texts, truth values, None."""

from __future__ import annotations

from typing import Any, Final, Literal, get_args, get_origin

from intarsia.transform.pass_syntax.syntax_tree import ListNode, NamedNode, Node, NumberNode, StringNode
from intarsia.transform.pass_text import WORDS, option_text

NO_VALUE: Final = object()
"""Stands for a part of a text that is no value without parts."""


def scalar(node: Node) -> object:
    """Return the value of a part of a text; `NO_VALUE` if that has parts itself.

    A word that is none of `WORDS` is a text, so that short texts need no quotation marks.
    """
    match node:
        case NumberNode(value=value) | StringNode(value=value):
            return value
        case NamedNode(name=name, has_braces=False):
            return WORDS.get(name, name)
        case _:
            return NO_VALUE


def has_type(value: object, hint: Any) -> bool:
    """Whether a value without parts is of a type; whole numbers are floats too, truth values no numbers."""
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if hint is None or hint is type(None):
        return value is None
    if hint in (int, float) and isinstance(value, bool):
        return False
    if hint is float:
        return isinstance(value, int | float)
    return isinstance(hint, type) and value is not NO_VALUE and isinstance(value, hint)


def described(node: Node) -> str:
    """Return what a part of a text is, in words."""
    match node:
        case NumberNode(value=value):
            return f"the number {option_text(value)}"
        case StringNode(value=value):
            return f"the text {option_text(value)}"
        case ListNode():
            return "a list"
        case NamedNode(name=name):
            return f"{name}{{...}}" if node.has_braces else name
