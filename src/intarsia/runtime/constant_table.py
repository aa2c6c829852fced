"""Number the distinct arrays of an executable, so that each is saved once."""

from __future__ import annotations

from intarsia.ir.dtype import DType
from intarsia.runtime.kernel import Array


class ConstantTable:
    """Numbers of arrays; arrays over the same bytes with the same type and shape share a number."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []
        self._numbers: dict[tuple[object, ...], int] = {}

    def number(self, array: Array) -> int:
        """Return the number of an array, and add the array if it is new."""
        dtype = DType.of(array)
        # Strings are Python objects: the pointers in NumPy's memory can be equal although the array is
        # another one.
        address = id(array) if dtype is DType.STRING else array.__array_interface__["data"][0]
        key = (address, dtype, array.shape, array.strides)
        if key not in self._numbers:
            self._numbers[key] = len(self.arrays)
            self.arrays.append(array)  # held, so that no other array can get the same address
        return self._numbers[key]

    @staticmethod
    def name(number: int) -> str:
        """Return the name of a constant in the file of constants."""
        return f"c{number}"

    def named(self) -> dict[str, Array]:
        """Return all arrays by name."""
        return {self.name(number): array for number, array in enumerate(self.arrays)}
