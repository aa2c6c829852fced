"""A program while it is being written down: its lines, its constants, and what stands where."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy.typing as npt

from intarsia.ir.attributes import Attrs
from intarsia.ir.constant_digest import constant_digest
from intarsia.ir.constant_literal import literal_text
from intarsia.ir.expr import Constant, Expr
from intarsia.ir.literal import device_text, name_text, span_text, value_text
from intarsia.ir.types import Type
from intarsia.target import UNCONSTRAINED

TEXT_VERSION: Final = "0.1"
_DIGEST_DIGITS: Final = 12


@dataclass(frozen=True, slots=True)
class ProgramText:
    """A program as text, and the arrays that it refers to as `meta[Constant][i]`: all but short ones."""

    text: str
    constants: tuple[npt.NDArray[Any], ...]


@dataclass(slots=True)
class Listing:
    """A program written down so far.

    Attributes:
        show_types: Write types; the text still parses without.
        show_devices: Write virtual devices.
        show_spans: Write spans.
        number_constants: Write the numbers of constants; else the start of their digests.
        lines: The text.
        constants: The number of each constant.
        line_of: Index of the line that an expression is written on, by global function and expression.
        name_of: Text that refers to an expression, by global function and expression.
        statement_line: Index of the line of each statement of a loop function, by function and number.
    """

    show_types: bool = True
    show_devices: bool = True
    show_spans: bool = True
    number_constants: bool = True
    lines: list[str] = field(default_factory=list)
    constants: dict[Constant, int] = field(default_factory=dict)
    line_of: dict[tuple[str, Expr], int] = field(default_factory=dict)
    name_of: dict[tuple[str, Expr], str] = field(default_factory=dict)
    statement_line: dict[tuple[str, int], int] = field(default_factory=dict)

    def finish(self) -> ProgramText:
        """The text as one string."""
        return ProgramText("\n".join(self.lines) + "\n", tuple(c.data for c in self.constants))

    def constant_text(self, constant: Constant) -> str:
        """A short constant itself; else the reference to it, numbered at its first appearance."""
        literal = literal_text(constant.data)
        if literal is not None:
            return literal
        number = self.constants.setdefault(constant, len(self.constants))
        return f"meta[Constant][{number if self.number_constants else _digest_text(constant)}]"

    def attrs_text(self, attrs: Attrs) -> str:
        """Attributes as `name=value, name=value`.

        Raises:
            TypeError: A value is of none of the kinds that attributes have.
        """
        return ", ".join(
            f"{name_text(name)}={value_text(value, self.constant_text)}" for name, value in attrs.items()
        )

    def facts_text(self, expr: Expr, own_type: Type | None) -> str:
        """What is known about an expression, as far as it is shown: type, virtual device and span."""
        text = f": {own_type}" if own_type is not None and self.show_types else ""
        device = expr.virtual_device
        if device is not UNCONSTRAINED and device != UNCONSTRAINED and self.show_devices:
            text += f" {device_text(device)}"
        if expr.span is not None and self.show_spans:
            text += f" {span_text(expr.span)}"
        return text


def _digest_text(constant: Constant) -> str:
    return constant_digest(constant).hex()[:_DIGEST_DIGITS]
