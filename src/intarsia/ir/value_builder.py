"""What the grammar's rules for types, attribute values and annotations build."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias, TypeVar

import numpy.typing as npt

from intarsia.ir.attributes import Attrs, AttrValue
from intarsia.ir.constant_literal import literal_array
from intarsia.ir.expr import Constant
from intarsia.ir.literal import bytes_of, device_of, name_of, span_of, tensor_type_of
from intarsia.ir.text_error import text_error
from intarsia.ir.types import ABSENT, FuncType, OptionalType, SequenceType, TensorType, TupleType, Type
from intarsia.support.errors import ProgramTextError

if TYPE_CHECKING:
    from lark import Token

T = TypeVar("T")

Children: TypeAlias = list[Any]
Facts: TypeAlias = dict[str, Any]
UNKNOWN: Final = object()
"""What `_` stands for where a type is expected (None is a type that is not written at all)."""


class ValueBuilder:
    """Builds the values inside a statement, from the text and its constants."""

    def begin(self, source: str, constants: tuple[npt.NDArray[Any], ...]) -> None:
        """Forget everything, and be ready for a text."""
        self.source = source
        self.constants = constants
        self.plain_constants: dict[int, Constant] = {}
        self.literals: dict[str, Constant] = {}

    def fail(self, token: Token, problem: str, help_text: str = "") -> NoReturn:
        """Raise an error at a token.

        Raises:
            ProgramTextError: Always.
        """
        assert token.line is not None
        assert token.column is not None
        raise text_error(self.source, token.line, token.column, problem, help_text)

    def read(self, reader: Callable[[str], T], token: Token, what: str) -> T:
        """What a reader makes of a token, its complaints put in place.

        Raises:
            ProgramTextError: The reader raised a ValueError or a ProgramTextError.
        """
        try:
            return reader(str(token))
        except ProgramTextError as error:
            self.fail(token, error.problem, error.help)
        except ValueError as error:
            self.fail(token, f"{token} is not {what}: {error}")

    def name(self, token: Token) -> str:
        """The name in an identifier, a string, a %name or a @name."""
        return self.read(lambda text: name_of(text.lstrip("%@")), token, "a name")

    def constant_at(self, token: Token) -> Constant:
        """The constant that `meta[Constant][i]` refers to, one object for each number."""
        index = int(token[len("meta[Constant][") : -1])
        if index >= len(self.constants):
            count = len(self.constants)
            have = f"{count} constant{'' if count == 1 else 's'}"
            self.fail(token, f"{token} is missing; the text comes with {have}")
        if index not in self.plain_constants:
            self.plain_constants[index] = Constant(self.constants[index])
        return self.plain_constants[index]

    def facts(self, children: Children) -> Facts:
        """`: type @device(...) @span(...)`, each optional."""
        typed, device, span = children
        facts: Facts = {}
        if typed is not None:
            facts["checked_type"] = typed[1]
        if device is not None:
            facts["virtual_device"] = self.read(device_of, device, "a virtual device")
        if span is not None:
            facts["span"] = self.read(span_of, span, "a span")
        return facts

    def attributes(self, children: Children) -> dict[str, AttrValue]:
        """Attributes in order; the dictionary grows from left to right."""
        *before, (token, name, value) = children
        values: dict[str, AttrValue] = before[0] if before else {}
        if name in values:
            self.fail(token, f"attribute {token} is given twice")
        values[name] = value
        return values

    def attribute(self, children: Children) -> tuple[Token, str, AttrValue]:
        """One `name=value`."""
        token, value = children
        return token, self.name(token), value

    def module_attrs(self, children: Children) -> Attrs:
        """`#[attrs(...)]`."""
        return Attrs(children[0])

    def int_value(self, children: Children) -> int:
        """A whole number."""
        return int(children[0])

    def float_value(self, children: Children) -> float:
        """A number with point or exponent, inf or nan."""
        return float(children[0])

    def bool_value(self, children: Children) -> bool:
        """`true` or `false`."""
        return bool(children[0] == "true")

    def string_value(self, children: Children) -> str:
        """A quoted string."""
        return self.read(name_of, children[0], "a string")

    def bytes_value(self, children: Children) -> bytes:
        """A quoted string after `b`."""
        return self.read(bytes_of, children[0], "bytes")

    def constant_value(self, children: Children) -> Constant:
        """A tensor."""
        return self.constant_at(children[0])

    def literal_value(self, children: Children) -> Constant:
        """A short tensor written in place; one object for all of one text."""
        token = children[0]
        if token not in self.literals:
            self.literals[str(token)] = Constant(self.read(literal_array, token, "a constant"))
        return self.literals[token]

    def empty_list(self, _: Children) -> tuple[()]:
        """`[]`."""
        return ()

    def list_value(self, children: Children) -> tuple[AttrValue, ...]:
        """`[value, ...]`."""
        return tuple(children[0])

    def grow(self, children: Children) -> list[Any]:
        """A list, one longer; the list grows from left to right."""
        if len(children) == 1:
            return children
        grown: list[Any] = children[0]
        grown.append(children[1])
        return grown

    values = types = maybe_types = grow

    def typed(self, children: Children) -> tuple[Token, Type]:
        """`: type`."""
        token, own_type = children
        return token, own_type

    def tensor_typed(self, children: Children) -> tuple[Token, Type]:
        """`: Tensor[...]`."""
        token = children[0]
        return token, self.tensor_type([token.update(value=token[1:].strip())])

    def tensor_type(self, children: Children) -> TensorType:
        """`Tensor[(...), dtype]`."""
        return self.read(tensor_type_of, children[0], "a tensor type")

    def empty_tuple_type(self, _: Children) -> TupleType:
        """`()`."""
        return ABSENT

    def tuple_type(self, children: Children) -> TupleType:
        """`(type,)` or `(type, type)`."""
        first, rest = children
        return TupleType((first, *(rest or ())))

    def func_type(self, children: Children) -> FuncType:
        """`fn (type, ...) -> type`."""
        params, result = children
        return FuncType(tuple(known(param) for param in params or ()), known(result))

    def sequence_type(self, children: Children) -> SequenceType:
        """`Sequence[type]`."""
        return SequenceType(children[0])

    def optional_type(self, children: Children) -> OptionalType:
        """`Optional[type]`."""
        return OptionalType(children[0])

    def unknown_type(self, _: Children) -> object:
        """`_`."""
        return UNKNOWN


def known(own_type: Type | object) -> Any:
    """The type, or None for `_`."""
    return None if own_type is UNKNOWN else own_type
