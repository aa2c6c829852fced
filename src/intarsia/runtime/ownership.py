"""Results that belong to the caller: none shares memory with what the executable or the caller keeps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from intarsia.runtime.kernel import Value


def owned(results: Sequence[Value], kept: Sequence[Value]) -> list[Value]:
    """The results, with a copy in place of each that shares memory with `kept` or an earlier result."""
    seen = list(kept)
    safe: list[Value] = []
    for result in results:
        own = result
        if isinstance(result, list):
            own = owned(result, seen)
        elif isinstance(result, np.ndarray) and shares_memory(result, seen):
            own = result.copy()
        safe.append(own)
        seen.append(own)
    return safe


def shares_memory(value: Value, others: Sequence[Value]) -> bool:
    """Whether an array's bytes may be those of another value, by the bounds of their memory."""
    if not isinstance(value, np.ndarray):
        return False
    for other in others:
        if isinstance(other, np.ndarray):
            if other is value or np.may_share_memory(value, other):
                return True
        elif isinstance(other, list) and shares_memory(value, other):
            return True
    return False
