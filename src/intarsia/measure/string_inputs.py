"""Strings for random inputs: words that the program has a table entry for, and one that it has not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.ir import (
    Call,
    Constant,
    DType,
    Expr,
    Function,
    If,
    Let,
    Op,
    SequenceType,
    TensorType,
    Tuple,
    TupleGetItem,
    Type,
    Var,
    post_order,
)

UNKNOWN_WORD: Final = "unknown"
"""What no table of a program holds, in all likelihood; what operators make of it is part of the result."""

_WORDS: Final = ("the", "cat", "sat", "on", "a", "mat")
"""Words for programs without tables."""

_NUMBERS: Final = ("0", "1", "-2", "3.5", "7")
"""Strings for what is cast to numbers; 3.5 is left out where the numbers are integers."""

_TABLES: Final = ("cats_strings", "keys_strings", "stopwords", "pool_strings", "vocabulary")
"""Attributes that list the strings that an operator compares its argument with."""

_SPLITTING: Final = frozenset({"StringSplit", "Tokenizer", "RegexFullMatch"})
"""Operators on text of several words."""

_WORDS_OF_A_TEXT: Final = 4
"""Number of words of a text for splitting operators."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Strings that one input is drawn from.

    Attributes:
        words: The strings; at least one.
        is_text: Whether an element is several words with spaces between them.
    """

    words: tuple[str, ...]
    is_text: bool = False

    def draw(self, shape: Sequence[int], generator: np.random.Generator) -> npt.NDArray[Any]:
        """Draw an object array of strings."""
        count = _WORDS_OF_A_TEXT if self.is_text else 1
        picks = generator.integers(0, len(self.words), size=(int(np.prod(shape, dtype=np.int64)), count))
        texts = [" ".join(self.words[pick] for pick in row) for row in picks]
        result = np.empty(len(texts), dtype=object)
        result[:] = texts
        return result.reshape(tuple(shape))


def vocabularies(function: Function) -> dict[str, Vocabulary]:
    """Return what strings each parameter of strings is drawn from, by the parameter's name.

    Strings are followed from the parameters to the operators that compare them with a table: encoders,
    mappers, normalisers, Equal with a constant. A parameter with strings that reach no table gets the words
    of all
    tables. The unknown word takes part unless an operator fails on it (OneHotEncoder with zeros = 0).
    """
    params = [param for param in function.params if _is_of_strings(param.checked_type)]
    if not params:
        return {}
    sources = _sources(function, params)
    uses = {param: _Uses() for param in params}
    everywhere = _Uses()
    for call in (expr for expr in post_order(function) if isinstance(expr, Call)):
        for param in frozenset().union(*(sources.get(arg, frozenset()) for arg in call.args)):
            uses[param].add(call)
        if any(_is_of_strings(arg.checked_type) for arg in call.args):
            everywhere.add(call)
    return {param.name: (uses[param] if uses[param].words else everywhere).vocabulary() for param in params}


@dataclass(slots=True)
class _Uses:
    """What is known of the strings of a parameter from the operators that read them."""

    words: dict[str, None] = field(default_factory=dict)
    is_text: bool = False
    fails_on_unknown: bool = False

    def add(self, call: Call) -> None:
        self.words.update(dict.fromkeys(_table(call)))
        name = call.op.name if isinstance(call.op, Op) else ""
        self.is_text |= name in _SPLITTING
        self.fails_on_unknown |= name == "Cast" or (
            name == "OneHotEncoder" and call.attrs.get("zeros", 1) == 0
        )

    def vocabulary(self) -> Vocabulary:
        unknown = () if self.fails_on_unknown else (UNKNOWN_WORD,)
        return Vocabulary((*(self.words or _WORDS), *unknown), self.is_text)


def _table(call: Call) -> Iterator[str]:
    """The strings that an operator compares its argument with."""
    for name in _TABLES:
        yield from _texts(call.attrs.get(name, ()))
    keys = call.attrs.get("keys_tensor")
    if isinstance(keys, Constant):
        yield from _texts(keys.data.reshape(-1).tolist())
    for arg in call.args:
        if isinstance(arg, Constant) and _is_of_strings(arg.checked_type):
            yield from _texts(arg.data.reshape(-1).tolist())
    if isinstance(call.op, Op) and call.op.name == "Cast" and isinstance(call.checked_type, TensorType):
        is_float = call.checked_type.dtype.is_float
        yield from (text for text in _NUMBERS if is_float or "." not in text)


def _texts(values: Any) -> Iterator[str]:
    for value in values if isinstance(values, Iterable) and not isinstance(values, str) else ():
        if isinstance(value, (str, bytes)):
            yield value.decode(errors="replace") if isinstance(value, bytes) else value


def _sources(function: Function, params: Sequence[Var]) -> Mapping[Expr, frozenset[Var]]:
    """The parameters that strings of each expression come from."""
    sources: dict[Expr, frozenset[Var]] = {param: frozenset((param,)) for param in params}
    for expr in post_order(function):
        if expr in sources or not _may_hold_strings(expr.checked_type):
            continue
        match expr:
            case Call():
                parts: tuple[Expr, ...] = expr.args
            case Tuple():
                parts = expr.fields
            case TupleGetItem():
                parts = (expr.tuple_value,)
            case If():
                parts = (expr.true_branch, expr.false_branch)
            case Let():
                sources[expr.var] = sources.get(expr.value, frozenset())
                parts = (expr.body,)
            case _:
                continue
        sources[expr] = frozenset().union(*(sources.get(part, frozenset()) for part in parts))
    return sources


def _may_hold_strings(type_: Type | None) -> bool:
    return not isinstance(type_, TensorType) or type_.dtype is DType.STRING


def _is_of_strings(type_: Type | None) -> bool:
    if isinstance(type_, SequenceType):
        return _is_of_strings(type_.element)
    return isinstance(type_, TensorType) and type_.dtype is DType.STRING
