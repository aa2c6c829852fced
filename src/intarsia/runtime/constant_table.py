"""Every distinct array once, however many parts of an executable share it."""

from __future__ import annotations

from intarsia.ir.dtype import DType
from intarsia.runtime.kernel import Array


class ConstantTable:
    """Gives each array a number; arrays over the same bytes with the same type and shape get the same one."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []
        self._numbers: dict[tuple[object, ...], int] = {}

    def number(self, array: Array) -> int:
        """The array's number, its own or that of its twin."""
        dtype = DType.of(array)
        # Texts are objects: bytes in NumPy's own memory do not tell them apart from a changed copy.
        place = id(array) if dtype is DType.STRING else array.__array_interface__["data"][0]
        key = (place, dtype, array.shape, array.strides)
        if key not in self._numbers:
            self._numbers[key] = len(self.arrays)
            self.arrays.append(array)  # held, so that no other array can come to lie at the same place
        return self._numbers[key]

    @staticmethod
    def name(number: int) -> str:
        """The name of a constant in the file of constants."""
        return f"c{number}"

    def named(self) -> dict[str, Array]:
        """All arrays by name."""
        return {self.name(number): array for number, array in enumerate(self.arrays)}
