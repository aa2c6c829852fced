"""Errors of texts that keep to the grammar: unknown names, wrong types."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

from intarsia.transform.pass_packages import load_pass_packages
from intarsia.transform.pass_syntax.option_hint import OptionHint
from intarsia.transform.pass_syntax.scalar import described
from intarsia.transform.pass_syntax.source_text import PassTextError, SourceText
from intarsia.transform.pass_syntax.syntax_tree import NamedNode, Node, OptionNode

_MOST_LISTED: Final = 20
"""Largest number of names that an error lists."""


def unknown_name(source: SourceText, node: NamedNode, kind: str, names: Sequence[str]) -> PassTextError:
    """Return the error of a name that there is not.

    Args:
        source: The text.
        node: The part with the name.
        kind: Noun for what the name should be.
        names: The names that there are.
    """
    close = get_close_matches(node.name, names, n=3)
    others = (
        f"known: {', '.join(sorted(names))}" if len(names) <= _MOST_LISTED else "`intarsia passes` lists them"
    )
    advice = f"did you mean {' or '.join(close)}?" if close else others
    error = source.error(node.position, f"unknown {kind} {node.name!r}", advice)
    for reason in load_pass_packages():
        error.add_note(f"could not be loaded: {reason}")
    return error


def unknown_option(
    source: SourceText, node: NamedNode, option: OptionNode, hints: Sequence[OptionHint]
) -> PassTextError:
    """Return the error of an option that a pass or option type does not have.

    Args:
        source: The text.
        node: The pass, or the object of an option type.
        option: The option.
        hints: The options that there are.
    """
    close = get_close_matches(option.name, [hint.name for hint in hints], n=1)
    guess = f"did you mean {close[0]}? " if close else ""
    problem = f"{node.name} has no option {option.name!r}"
    return source.error(option.position, problem, guess + known_options(hints))


def missing_options(source: SourceText, node: NamedNode, missing: Sequence[OptionHint]) -> PassTextError:
    """Return the error of options without a default that are not given."""
    example = ", ".join(f"{hint.name}=..." for hint in missing)
    return source.error(
        node.position,
        f"{node.name} needs {' and '.join(map(str, missing))}",
        f"write {node.name}{{{example}}}",
    )


def wrong_value(source: SourceText, node: Node, expected: str) -> PassTextError:
    """Return the error of a value of another type than expected."""
    return source.error(node.position, f"found {described(node)}, expected {expected}")


def known_options(hints: Sequence[OptionHint]) -> str:
    """Return the options that there are, as advice."""
    return f"its options: {', '.join(map(str, hints)) or 'none'}"
