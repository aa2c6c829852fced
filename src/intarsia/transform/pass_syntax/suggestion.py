"""What may follow an unfinished text of passes."""

from __future__ import annotations

import types
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Union, get_args, get_origin

from intarsia.transform.compiler_pass import Pass
from intarsia.transform.option_type import OPTION_TYPES
from intarsia.transform.pass_registry import has_pass, pass_names, registered_pass
from intarsia.transform.pass_syntax.option_hint import (
    SEQUENTIAL_HINTS,
    OptionHint,
    item_hint,
    option_hints,
    option_type_names,
)
from intarsia.transform.pass_syntax.source_text import PassTextError, SourceText
from intarsia.transform.pass_syntax.token import Token, TokenKind, tokens
from intarsia.transform.pass_text import SEQUENTIAL, option_text
from intarsia.transform.pipeline import pipeline_names


def suggest_passes(text: str) -> list[str]:
    """Return the unfinished text with each name or bracket that may come next behind it.

    Args:
        text: Text of passes, such as "TuneLayout{strategy=B".
    """
    try:
        *complete, end = tokens(SourceText(text))
    except PassTextError:  # inside quotation marks, or at a character that no token begins with
        return []
    prefix = ""
    if (
        complete
        and complete[-1].kind is TokenKind.NAME
        and complete[-1].position + len(complete[-1].text) == (end.position)
    ):
        prefix = complete.pop().text
    if text != text.rstrip():
        prefix = ""
    base = text[: len(text) - len(prefix)]
    return [base + word for word in _Position(complete).words() if word.startswith(prefix)]


@dataclass
class _Frame:
    """An open bracket.

    Attributes:
        hints: Types of the items of a list, of which the last holds for all further ones.
        options: Options between braces; None for a list.
        given: Names of the options that are given already.
        items: Number of items before the position.
    """

    hints: Sequence[Any] = ()
    options: Sequence[OptionHint] | None = None
    given: list[str] = field(default_factory=list)
    items: int = 0

    @property
    def hint(self) -> Any:
        """Type of the item at the position."""
        if self.options is None:
            return self.hints[min(self.items, len(self.hints) - 1)] if self.hints else Any
        by_name = {option.name: option.hint for option in self.options}
        return by_name.get(self.given[-1] if self.given else "", Any)


class _Position:
    """The place behind some tokens: the brackets that are open there, and what may come."""

    def __init__(self, before: Sequence[Token]) -> None:
        self._frames = [_Frame(hints=(Pass,))]
        self._awaits_name, self._awaits_value = False, True
        self._name = ""
        for token in before:
            self._pass_over(token)

    def words(self) -> list[str]:
        """Return the words that may come next."""
        frame = self._frames[-1]
        if self._awaits_name and frame.options is not None:
            return [f"{option.name}=" for option in frame.options if option.name not in frame.given]
        return _value_words(frame.hint) if self._awaits_value else []

    def _pass_over(self, token: Token) -> None:
        match token.text if token.kind is TokenKind.MARK else "":
            case "{":
                self._open(_Frame(options=_options_of(self._name)))
            case "[":
                self._open(_Frame(hints=_item_hints(self._frames[-1].hint)))
            case "}" | "]":
                if len(self._frames) > 1:
                    self._frames.pop()
                self._awaits_name = self._awaits_value = False
            case ",":
                self._frames[-1].items += 1
                self._await()
            case "=":
                self._awaits_value = True
            case _:
                self._take_name(token.text)

    def _open(self, frame: _Frame) -> None:
        self._frames.append(frame)
        self._await()

    def _await(self) -> None:
        """Await the first or next item of the innermost bracket."""
        self._awaits_name = self._frames[-1].options is not None
        self._awaits_value = not self._awaits_name

    def _take_name(self, name: str) -> None:
        if self._awaits_name:
            self._frames[-1].given.append(name)
        else:
            self._name = name
        self._awaits_name = self._awaits_value = False


def _options_of(name: str) -> Sequence[OptionHint]:
    if has_pass(name):
        return option_hints(registered_pass(name))
    if name in OPTION_TYPES:
        return option_hints(OPTION_TYPES[name])
    return SEQUENTIAL_HINTS if name == SEQUENTIAL else ()


def _alternatives(hint: Any) -> Sequence[Any]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _item_hints(hint: Any) -> Sequence[Any]:
    """Return the types of the items of a list, where an option takes one."""
    for alternative in _alternatives(hint):
        if item := item_hint(alternative):
            return item
        if get_origin(alternative) is tuple:
            return get_args(alternative)
    return ()


def _value_words(hint: Any) -> list[str]:
    """Return the words that a value of a type may begin with."""
    words: list[str] = []
    for alternative in _alternatives(hint):
        if get_origin(alternative) is Literal:
            words += map(option_text, get_args(alternative))
        elif alternative is type(None):
            words.append("None")
        elif alternative is bool:
            words += ["True", "False"]
        elif item_hint(alternative) or get_origin(alternative) is tuple:
            words.append("[")
        elif isinstance(alternative, type) and issubclass(alternative, Pass):
            words += [*pipeline_names(), *pass_names(), SEQUENTIAL]
        elif alternative is not Any and alternative is not object:
            words += option_type_names(alternative)
    return words
