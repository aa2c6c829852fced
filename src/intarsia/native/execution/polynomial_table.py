"""Many polynomials of the entries of a table, evaluated together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from intarsia.native.execution.size_table import Linear, Polynomial


class PolynomialTable:
    """Polynomials of the same entries.

    Args:
        polynomials: The polynomials.
        entries: Number of entries of the table.
    """

    def __init__(self, polynomials: Sequence[Polynomial], entries: int) -> None:
        terms = [polynomial or ((0, ()),) for polynomial in polynomials]
        flat = [term for summands in terms for term in summands]
        degree = max((len(positions) for _, positions in flat), default=0)
        self._factors = np.array([number for number, _ in flat], np.int64)
        # Behind the entries there is a 1, which fills up short products.
        self._positions = np.array(
            [(*positions, *(entries,) * (degree - len(positions))) for _, positions in flat], np.int64
        ).reshape(len(flat), degree)
        self._begins = np.cumsum([0, *map(len, terms)])[:-1]

    def values(self, values: Sequence[int]) -> npt.NDArray[np.int64]:
        """Return the values of all polynomials, which must fit 64 bits."""
        return self._sums(np.array((*values, 1), np.int64)).astype(np.int64)

    def estimates(self, values: Sequence[int]) -> npt.NDArray[np.float64]:
        """Return the values of all polynomials, rounded, however large they are."""
        return self._sums(np.array((*values, 1), np.float64)).astype(np.float64)

    def _sums(self, values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        if not len(self._begins):
            return values[:0]
        products = self._factors * values[self._positions].prod(axis=1)
        result: npt.NDArray[np.generic] = np.add.reduceat(products, self._begins)
        return result


def of_linear(linear: Linear) -> Polynomial:
    """Return a linear form as a polynomial."""
    const, terms = linear
    constants = ((const, ()),) if const else ()
    return (*constants, *((number, (position,)) for position, number in terms))
