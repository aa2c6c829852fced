"""What it costs that a value crosses from one piece to another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class Transition:
    """Seconds for one value and one consuming piece: fixed + per byte, by producing and consuming spec.

    Both matrices are (specs + 1) x (specs + 1), row: producer, column: consumer. The last row and column
    are the outside: parameters come from there and results go there. The diagonal counts as well: it is
    the cost between two pieces of the same spec.
    """

    fixed: Matrix
    per_byte: Matrix

    def __post_init__(self) -> None:
        """Check the shapes and the signs.

        Raises:
            ValueError: Not square, not of equal size, or an entry that is negative, infinite or no number.
        """
        size = len(self.fixed)
        for matrix in (self.fixed, self.per_byte):
            if len(matrix) != size or any(len(row) != size for row in matrix):
                raise ValueError("the matrices of a transition are square and of equal size")
            if not all(0 <= entry < float("inf") for row in matrix for entry in row):
                raise ValueError("the entries of a transition are finite and at least 0")

    @classmethod
    def free(cls, specs: int) -> Transition:
        """Crossing costs nothing."""
        zeros = tuple((0.0,) * (specs + 1) for _ in range(specs + 1))
        return cls(zeros, zeros)

    @classmethod
    def of(cls, fixed: Iterable[Iterable[float]], per_byte: Iterable[Iterable[float]]) -> Transition:
        """From nested sequences or NumPy arrays."""
        return cls(_matrix(fixed), _matrix(per_byte))

    @property
    def outside(self) -> int:
        """The index that stands for the outside."""
        return len(self.fixed) - 1

    def seconds(self, producer: int, consumer: int, size: float) -> float:
        """The cost of one value of `size` bytes for one consuming piece."""
        return self.fixed[producer][consumer] + self.per_byte[producer][consumer] * size

    def producer_classes(self) -> tuple[int, ...]:
        """For each spec the number of its class; specs of one class cost the same to every consumer."""
        rows: dict[tuple[tuple[float, ...], tuple[float, ...]], int] = {}
        inside = self.outside
        keys = [(self.fixed[spec][:inside], self.per_byte[spec][:inside]) for spec in range(inside)]
        return tuple(rows.setdefault(key, len(rows)) for key in keys)


def _matrix(rows: Iterable[Iterable[float]]) -> Matrix:
    return tuple(tuple(float(entry) for entry in row) for row in rows)
