"""Coefficients of the natural logarithm near 1, for float32."""

from __future__ import annotations

from typing import Final

LOG_TERMS: Final = (
    *(0.3333333134651184, -0.25000837445259094, 0.20001284778118134, -0.16622774302959442),
    *(0.14199833571910858, -0.13164231181144714, 0.1277833729982376, -0.07645110040903091),
)
"""Coefficients c of log(1 + x) = x - x**2 / 2 + x**3 * (c[0] + c[1] * x + ...), from sqrt(1/2) to sqrt(2).

They are a minimax fit of this project: weighted least squares on Chebyshev points, rounded in turn.
"""
LN2_HIGH: Final = 0.693359375
"""Nine bits of the logarithm of 2: products with small integers are exact."""
LN2_LOW: Final = -2.12194440e-4
"""What `LN2_HIGH` lacks."""
