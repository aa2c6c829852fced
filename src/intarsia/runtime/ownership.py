"""Results that share no memory with arrays of the executable or with the caller's inputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from intarsia.runtime.kernel import Value


def owned(results: Sequence[Value], kept: Sequence[Value]) -> list[Value]:
    """Return the results, with a copy of each that shares memory with `kept` or an earlier result."""
    seen = list(kept)
    safe: list[Value] = []
    for result in results:
        unaliased = result
        if isinstance(result, list):
            unaliased = owned(result, seen)
        elif isinstance(result, np.ndarray) and shares_memory(result, seen):
            unaliased = result.copy()
        safe.append(unaliased)
        seen.append(unaliased)
    return safe


def shares_memory(value: Value, others: Sequence[Value]) -> bool:
    """Return whether an array may share bytes with another value, by the bounds of their memory."""
    if not isinstance(value, np.ndarray):
        return False
    for other in others:
        if isinstance(other, np.ndarray):
            if other is value or np.may_share_memory(value, other):
                return True
        elif isinstance(other, list) and shares_memory(value, other):
            return True
    return False
