"""Errors in program text: where, what was found, and what was expected, in words."""

from __future__ import annotations

from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING, Final

from intarsia.support.caret import caret_lines
from intarsia.support.errors import ProgramTextError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lark.exceptions import UnexpectedInput

_EXPRESSION: Final = {
    "LPAR",
    "DOMAIN",
    "STRING",
    "VAR",
    "LET",
    "FN",
    "CONSTANT",
    "GLOBAL",
    "IDENT",
    "IF",
    "LITERAL",
}
_TYPE: Final = {"TENSOR", "LPAR", "FN", "SEQUENCE", "OPTIONAL"}
_VALUE: Final = _TYPE | {"INT", "FLOAT", "BOOL", "STRING", "BYTES", "CONSTANT", "LITERAL", "LSQB"}
_SCALAR: Final = {"LOOP_NUMBER", "LOOP_DTYPE", "IDENT", "STRING", "LPAR", "NOT"}
_GROUPS: Final = (
    (_EXPRESSION | {"FREE_VAR", "BIND"}, "a statement or an expression"),
    (_VALUE, "a value"),
    (_EXPRESSION, "an expression"),
    (_TYPE | {"UNDERSCORE"}, "a type or _"),
    (_TYPE, "a type"),
    (_SCALAR, "a scalar"),
    (_SCALAR - {"NOT"}, "a scalar"),
    ({"FOR", "IF", "ALLOC", "ASYNC", "BARRIER", "MMA", "IDENT", "STRING"}, "a statement"),
    ({"IDENT", "STRING"}, "a name"),
)
_OPERATORS: Final = {"ADDITIVE", "MULTIPLICATIVE", "COMPARISON", "AND", "OR"}
_CONTINUATIONS: Final = {"COLON", "TYPED", "DEVICE", "SPAN", "FIELD", "LPAR", "_DOMAIN_END", *_OPERATORS}
_WORDS: Final = {
    "$END": "the end of the text",
    "ATTRIBUTES": "attributes {...}",
    "BUFFER": "Buffer[...]",
    "COMMIT": "commit",
    "COPY": "copy",
    "COUNT": "count",
    "CONSTANT": "meta[Constant][...]",
    "DEF": "def",
    "DEVICE": "@device(...)",
    "ELSE": "else",
    "EQUAL": "'='",
    "FIELD": "a field such as .0",
    "FOR_KIND": "parallel, vectorized or unrolled",
    "GLOBAL": "a @name",
    "IN": "in",
    "INT": "a whole number",
    "LBRACE": "'{'",
    "LOOP_DTYPE": "an element type",
    "LPAR": "'('",
    "LSQB": "'['",
    "COLON": "':'",
    "_COMMA": "','",
    "_ARROW": "'->'",
    "_ATTRS_OPEN": "#[attrs(...)]",
    "PLUS_EQUAL": "'+='",
    "PRIM": "prim",
    "RBRACE": "'}'",
    "RPAR": "')'",
    "RSQB": "']'",
    "_SEMICOLON": "';'",
    "SIGNED": "signed",
    "SPAN": "@span(...)",
    "STAR": "'*'",
    "STRING": "a string",
    "TRANSPOSED": "transposed",
    "VALID": "valid",
    "VAR": "a %name",
    "VERSION_OPEN": "#[version = ...]",
    "WAIT": "wait",
    "WIDTH": "width",
}


def text_error(source: str, line: int, column: int, problem: str, help_text: str = "") -> ProgramTextError:
    """An error at a place of a text (line and column counted from 1), with that line and a caret below it."""
    where = f"line {line}, column {column}: {problem}"
    return ProgramTextError(f"{where}\n{caret_lines(source, line, column)}", help=help_text)


def syntax_error(source: str, error: UnexpectedInput) -> ProgramTextError:
    """What lark found, in our words."""
    from lark.exceptions import UnexpectedToken

    expected = expected_words(error.interactive_parser.accepts())
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        line = source.count("\n") + 1
        column = len(source) - source.rfind("\n")
        return text_error(source, line, column, f"the text ends; expected {expected}")
    if isinstance(error, UnexpectedToken):
        token_text = str(error.token).strip()
    else:
        token_text = source[error.pos_in_stream :].split(maxsplit=1)[0]
    token_text = token_text if len(token_text) <= 30 else f"{token_text[:27]}..."
    return text_error(source, error.line, error.column, f"found {token_text}; expected {expected}")


def expected_words(terminals: Iterable[str]) -> str:
    """Names of the grammar's terminals as one phrase: `';' or an expression`."""
    left = set(terminals)
    phrases = []
    for group, phrase in _GROUPS:
        if group <= left:
            phrases.append(phrase)
            left -= group
    if phrases or left - _CONTINUATIONS:
        left -= _CONTINUATIONS
    phrases += sorted(_WORDS.get(name, name) for name in left)
    return f"{', '.join(phrases[:-1])} or {phrases[-1]}" if len(phrases) > 1 else phrases[0]


def did_you_mean(sigil: str, name: str, known: Iterable[str]) -> str:
    """A help line that names the closest known name, or the empty string."""
    close = get_close_matches(name, list(islice(known, 1000)), n=1)
    return f"did you mean {sigil}{close[0]}?" if close else ""
