"""The parts of a text of passes, before anything is looked up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class NumberNode:
    """A number.

    Attributes:
        position: Index of its first character.
        value: The number.
    """

    position: int
    value: int | float


@dataclass(frozen=True, slots=True)
class StringNode:
    """A text in quotation marks.

    Attributes:
        position: Index of its first character.
        value: The text.
    """

    position: int
    value: str


@dataclass(frozen=True, slots=True)
class ListNode:
    """Values between square brackets.

    Attributes:
        position: Index of the bracket.
        items: The values.
    """

    position: int
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class OptionNode:
    """A name with a value.

    Attributes:
        position: Index of the first character of the name.
        name: Name of the option.
        value: Its value.
    """

    position: int
    name: str
    value: Node


@dataclass(frozen=True, slots=True)
class NamedNode:
    """A name, with options or without: a pass, a pipeline, an option type, or a word such as `None`.

    Attributes:
        position: Index of its first character.
        name: The name.
        options: Options between braces, in order.
        has_braces: Whether there are braces, so that it is no word.
    """

    position: int
    name: str
    options: tuple[OptionNode, ...] = ()
    has_braces: bool = False


Node: TypeAlias = NumberNode | StringNode | ListNode | NamedNode
