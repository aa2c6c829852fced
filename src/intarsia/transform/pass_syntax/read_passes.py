"""Passes of a text."""

from __future__ import annotations

from intarsia.support.errors import UsageError
from intarsia.transform.compiler_pass import Pass
from intarsia.transform.pass_registry import create_pass, has_pass
from intarsia.transform.pass_syntax.parser import parse_nodes
from intarsia.transform.pass_syntax.reader import PassReader
from intarsia.transform.pass_syntax.source_text import SourceText
from intarsia.transform.pass_syntax.syntax_tree import StringNode


def read_passes(text: str) -> tuple[Pass, ...]:
    """Return the passes and pipelines of a text, which commas separate.

    >>> read_passes("InferType, FoldConstant{max_bytes=1024}")

    Raises:
        PassTextError: The text breaks the grammar, names a pass or an option that there is not, or gives a
            value of another type; a caret shows where.
    """
    reader = PassReader(SourceText(text))
    return tuple([reader.read_pass(node) for node in parse_nodes(reader.source)])


def get_pass(text: str, **options: object) -> Pass:
    """Return the pass or pipeline of a name, or of a text with options: `FoldConstant{max_bytes=1024}`.

    Args:
        text: Name of the pass, or its text.
        options: Options beside those of the text.

    Raises:
        UsageError: No pass of that name (the nearest are listed), it has no such option, or the text is none
            of one pass.
    """
    if not isinstance(text, str):
        raise UsageError(f"get_pass takes the name or text of a pass, got {text!r}")
    if options and has_pass(text):  # an error about them has no place in the text
        return create_pass(text, **options)
    source = SourceText(text)
    nodes = (StringNode(0, text),) if has_pass(text) else parse_nodes(source)
    if not nodes:
        raise source.error(0, "found no pass")
    if len(nodes) > 1:
        help_text = "read_passes reads several"
        raise source.error(nodes[1].position, f"found {len(nodes)} passes, expected one", help_text)
    return PassReader(source).read_pass(nodes[0], options)
