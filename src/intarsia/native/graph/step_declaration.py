"""What the declarations of steps with narrow numbers on plain tensors have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from intarsia.ir import DType
from intarsia.native.graph.region_plan import Array, RegionValue
from intarsia.native.graph.straight_line import KernelStep
from intarsia.native.te import Tensor, placeholder


@dataclass(eq=False)
class StepDeclaration(ABC):
    """Declares a step on plain tensors.

    Attributes:
        step: The step.
        name: Name of the tensor of its result.
        types: Values of its arguments, in the shape in which the kernel sees them.
        tensors: Tensors of the kernel, by value number.
        numbers: Values that new placeholders read.
        arrays: Constants that new placeholders read.
    """

    step: KernelStep
    name: str
    types: Sequence[RegionValue | None]
    tensors: Mapping[int, Tensor]
    numbers: dict[Tensor, int] = field(default_factory=dict)
    arrays: dict[Tensor, Array] = field(default_factory=dict)

    @abstractmethod
    def result(self) -> Tensor:
        """Declare the result, and record its placeholders."""

    def argument(self, position: int) -> tuple[int, RegionValue]:
        """Return the number and the value of an argument that the step has."""
        number, value = self.step.args[position], self.types[position]
        assert number is not None, "the step has this argument"
        assert value is not None, "the step has this argument"
        return number, value

    def tensor_of(self, position: int) -> Tensor:
        """Return an argument: a tensor of the kernel, or else a placeholder."""
        number, _ = self.argument(position)
        return self.tensors[number] if number in self.tensors else self.read(position)

    def read(self, position: int, *, is_constant: bool = False) -> Tensor:
        """Return a placeholder that reads an argument."""
        number, value = self.argument(position)
        attrs = {"constant": 1} if is_constant else {}
        tensor = placeholder(value.type.static_shape, value.type.dtype, f"{self.name}.a{position}", attrs)
        self.numbers[tensor] = number
        return tensor

    def read_words(self, position: int, count: int) -> Tensor:
        """Return a placeholder (..., K / count): words of so many numbers of an argument (..., K)."""
        number, value = self.argument(position)
        *rows, depth = value.type.static_shape
        words = placeholder((*rows, depth // count), DType.INT32, f"{self.name}.words")
        self.numbers[words] = number
        return words

    def constant(self, array: Array) -> Tensor:
        """Return a placeholder that reads a constant."""
        name = f"{self.name}.c{len(self.arrays)}"
        tensor = placeholder(array.shape, DType.of(array), name, {"constant": 1})
        self.arrays[tensor] = np.ascontiguousarray(array)
        return tensor
