"""Passes and values of a parsed text, checked against the types of options."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union, get_args, get_origin

from intarsia.support.errors import UsageError
from intarsia.transform.compiler_pass import Pass
from intarsia.transform.option_type import OPTION_TYPES
from intarsia.transform.pass_registry import create_pass, has_pass, pass_names, registered_pass
from intarsia.transform.pass_syntax.option_hint import (
    SEQUENTIAL_HINTS,
    OptionHint,
    item_hint,
    option_hints,
    option_type_names,
    type_text,
)
from intarsia.transform.pass_syntax.reading_errors import (
    missing_options,
    unknown_name,
    unknown_option,
    wrong_value,
)
from intarsia.transform.pass_syntax.scalar import has_type, scalar
from intarsia.transform.pass_syntax.source_text import PassTextError, SourceText
from intarsia.transform.pass_syntax.syntax_tree import ListNode, NamedNode, Node, StringNode
from intarsia.transform.pass_text import SEQUENTIAL, WORDS
from intarsia.transform.pipeline import load_pass_sequence, pipeline_names
from intarsia.transform.sequential import Sequential


@dataclass(frozen=True, slots=True)
class PassReader:
    """Makes passes and values of the parts of a text.

    Attributes:
        source: The text, for errors.
    """

    source: SourceText

    def read_pass(self, node: Node, further: Mapping[str, object] | None = None) -> Pass:
        """Return the pass or pipeline that a part of the text names.

        Args:
            node: The part.
            further: Options beside those of the text.

        Raises:
            PassTextError: It names none, has no such option, or an option has another type.
        """
        match node:
            case StringNode(position, name):
                return self._create_pass(NamedNode(position, name), further or {})
            case NamedNode(name=name) if name not in WORDS or node.has_braces:
                return self._create_pass(node, further or {})
            case _:
                raise wrong_value(self.source, node, "a pass")

    def read_value(self, node: Node, hint: Any, option: str) -> object:
        """Return the value of a part of the text as an option of a type takes it.

        Args:
            node: The part.
            hint: Type of the option, or of the items of a list in it.
            option: Name of the option, for errors.

        Raises:
            PassTextError: The value has another type.
        """
        if get_origin(hint) in (Union, types.UnionType):
            return self._read_union(node, hint, option)
        if hint is Any or hint is object:
            return self._read_untyped(node)
        if get_origin(hint) is tuple or item_hint(hint):
            return self._read_list(node, hint, option)
        if isinstance(hint, type) and issubclass(hint, Pass):
            return self.read_pass(node)
        if isinstance(node, NamedNode) and node.name not in WORDS and (names := option_type_names(hint)):
            return self._create_option(node, names, type_text(hint))
        value = scalar(node)
        if has_type(value, hint):
            return value
        raise wrong_value(self.source, node, f"{option}: {type_text(hint)}")

    def _create_pass(self, node: NamedNode, further: Mapping[str, object]) -> Pass:
        name = node.name
        if has_pass(name):
            hints = option_hints(registered_pass(name))
            created = self._create(node, hints, lambda **values: create_pass(name, **values), further)
        elif name in pipeline_names():
            created = self._create(node, (), lambda: load_pass_sequence(name), further)
        elif name == SEQUENTIAL:
            created = self._create(node, SEQUENTIAL_HINTS, Sequential, further)
        else:
            raise unknown_name(self.source, node, "pass", (*pass_names(), *pipeline_names(), SEQUENTIAL))
        assert isinstance(created, Pass)
        return created

    def _create_option(self, node: NamedNode, names: Sequence[str], kind: str) -> object:
        if node.name not in names:
            raise unknown_name(self.source, node, kind, names)
        cls = OPTION_TYPES[node.name]
        return self._create(node, option_hints(cls), cls, {})

    def _create(
        self,
        node: NamedNode,
        hints: Sequence[OptionHint],
        create: Callable[..., object],
        further: Mapping[str, object],
    ) -> object:
        """Return what a function makes of the options of a part and further ones."""
        values = {**self._read_options(node, hints), **further}
        missing = [hint for hint in hints if hint.is_needed and hint.name not in values]
        if missing:
            raise missing_options(self.source, node, missing)
        try:
            return create(**values)
        except UsageError as error:
            raise self.source.error(node.position, error.problem, error.help) from error

    def _read_options(self, node: NamedNode, hints: Sequence[OptionHint]) -> dict[str, object]:
        by_name = {hint.name: hint for hint in hints}
        values: dict[str, object] = {}
        for option in node.options:
            if option.name not in by_name:
                raise unknown_option(self.source, node, option, hints)
            if option.name in values:
                raise self.source.error(option.position, f"{node.name} has the option {option.name!r} twice")
            values[option.name] = self.read_value(option.value, by_name[option.name].hint, option.name)
        return values

    def _read_union(self, node: Node, union: Any, option: str) -> object:
        """Return the value as the first of several types that takes it."""
        errors: list[PassTextError] = []
        for hint in get_args(union):
            try:
                return self.read_value(node, hint, option)
            except PassTextError as error:
                errors.append(error)
        deepest = max(errors, key=lambda error: error.position)
        if deepest.position > node.position:  # it has this type, up to an error inside
            raise deepest
        raise wrong_value(self.source, node, f"{option}: {type_text(union)}")

    def _read_list(self, node: Node, hint: Any, option: str) -> object:
        if not isinstance(node, ListNode):
            raise wrong_value(self.source, node, f"{option}: {type_text(hint)}")
        if item := item_hint(hint):
            values = [self.read_value(inner, item[0], option) for inner in node.items]
            return frozenset(values) if get_origin(hint) in (frozenset, set) else tuple(values)
        if len(node.items) != len(get_args(hint)):
            raise wrong_value(self.source, node, f"{option}: {type_text(hint)}")
        pairs = zip(node.items, get_args(hint), strict=True)
        return tuple([self.read_value(inner, argument, option) for inner, argument in pairs])

    def _read_untyped(self, node: Node) -> object:
        """Return a value by its looks, where the option has no type."""
        match node:
            case ListNode(items=items):
                return tuple([self._read_untyped(item) for item in items])
            case NamedNode(name=name) if name in option_type_names(object):
                return self._create_option(node, option_type_names(object), "option type")
            case NamedNode(name=name) if name not in WORDS or node.has_braces:
                return self.read_pass(node)
            case _:
                return scalar(node)
