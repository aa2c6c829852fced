"""The argument of a compute rule: an operator, its arguments as tensors, and their known values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from intarsia.ir import Attrs, AttrValue, TensorType
from intarsia.native.te.tensor import Tensor
from intarsia.support.errors import CompileError


@dataclass(eq=False)
class NotCoveredError(CompileError):
    """A call of an operator that has no compute rule, or of a form that the rule does not cover."""


@dataclass(frozen=True, slots=True, eq=False)
class ComputeCall:
    """One call of an operator.

    Attributes:
        op_name: Operator, such as "Conv"; "domain::name" for one that is not ONNX's default domain's.
        inputs: Arguments in order; None for an omitted one. Trailing ones may be missing.
        attrs: Attributes of the call, and the schema's defaults for omitted ones that have one.
        output_types: Type of each wanted result, with static shape; may be fewer than the operator has.
        constants: Value of each of `inputs`, where it is known: shapes, axes, pads, small scalars.
        name: Unique prefix of the names of the operations; the one that makes a result gets the name itself.
    """

    op_name: str
    inputs: tuple[Tensor | None, ...]
    attrs: Attrs
    output_types: tuple[TensorType, ...]
    constants: tuple[npt.NDArray[Any] | None, ...]
    name: str

    @property
    def output_type(self) -> TensorType:
        """The type of the first result."""
        return self.output_types[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first result."""
        return self.output_types[0].static_shape

    def not_covered(self, reason: str) -> NotCoveredError:
        """Return the error for a form that the rule does not cover, in a few words: "a computed axis"."""
        return NotCoveredError(f"operator {self.op_name!r} has no native kernel for {reason}")

    def has_input(self, position: int) -> bool:
        """Return whether an optional argument is given."""
        return position < len(self.inputs) and self.inputs[position] is not None

    def input(self, position: int) -> Tensor:
        """Return an argument that must be given.

        Raises:
            NotCoveredError: It is left out.
        """
        tensor = self.inputs[position] if position < len(self.inputs) else None
        if tensor is None:
            raise self.not_covered(f"argument {position} left out")
        return tensor

    def known_array(self, position: int) -> npt.NDArray[Any] | None:
        """Return the value of an argument; None where it is left out.

        Raises:
            NotCoveredError: It is given, and its value is not known.
        """
        if not self.has_input(position):
            return None
        value = self.constants[position]
        if value is None:
            raise self.not_covered(f"a computed argument {position}")
        return value

    def known_ints(self, position: int) -> tuple[int, ...] | None:
        """Return the value of an argument of integers, flattened; None where it is left out.

        Raises:
            NotCoveredError: It is given, and its value is not known.
        """
        value = self.known_array(position)
        return None if value is None else tuple(int(item) for item in value.reshape(-1))

    def refuse_outside(self, position: int, extents: Sequence[int]) -> None:
        """Refuse known indices that are out of range: kernels would clamp them, where others raise.

        Args:
            position: Argument with the indices.
            extents: Extent of the axis that they index; several for index tuples, which are its last axis.

        Raises:
            NotCoveredError: An index is not in [-extent, extent).
        """
        value = self.constants[position] if position < len(self.constants) else None
        if value is None or not value.size:
            return
        limits = np.asarray(extents, np.int64)
        outside = (value < -limits) | (value >= limits)
        if outside.any():
            index = int(np.broadcast_to(value, outside.shape)[outside][0])
            extent = int(np.broadcast_to(limits, outside.shape)[outside][0])
            raise self.not_covered(f"the index {index} of an axis of {extent} elements")

    def refuse_beyond(self, position: int, most: int, what: str) -> None:
        """Refuse known numbers that are negative or too large: kernels would clamp them, where others raise.

        Args:
            position: Argument with the numbers.
            most: Largest valid number.
            what: Name of such a number in the message: "the length".

        Raises:
            NotCoveredError: A number is not in [0, most].
        """
        value = self.constants[position] if position < len(self.constants) else None
        if value is None:
            return
        beyond = value[(value < 0) | (value > most)]
        if beyond.size:
            raise self.not_covered(f"{what} {int(beyond[0])}, expected 0 to {most}")

    def integer(self, name: str, default: int | None = None) -> int:
        """Return an attribute that is an integer."""
        value = self._attribute(name, default)
        assert isinstance(value, int)
        return value

    def real(self, name: str, default: float | None = None) -> float:
        """Return an attribute that is a float, rounded to float32 as ONNX stores it."""
        value = self._attribute(name, default)
        assert isinstance(value, (int, float))
        # Attributes of the schema are float32: 0.1 means the float32 nearest to it.
        return float(np.float32(value))

    def text(self, name: str, default: str | None = None) -> str:
        """Return an attribute that is a string."""
        value = self._attribute(name, default)
        assert isinstance(value, str)
        return value

    def integers(self, name: str, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """Return an attribute that is a list of integers."""
        value = self._attribute(name, default)
        assert isinstance(value, tuple)
        return tuple(item for item in value if isinstance(item, int))

    def _attribute(self, name: str, default: AttrValue | None) -> AttrValue:
        value = self.attrs.get(name, default)
        if value is None:
            raise self.not_covered(f"the attribute {name} left out")
        return value
