"""How far a workload is from one that a schedule was found for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import inf
from typing import TypeGuard


def calc_workload_dis_factor(wanted: str, known: str) -> float:
    """By how much more is to be done than was measured, if the workloads differ in sizes that divide.

    Names must be equal, and arguments alike: a number must be a multiple of the known one, zeros stand for
    zeros, and anything else must be equal. The factor is the product of the quotients; inf if these
    workloads have nothing to do with each other.

    Args:
        wanted: The key of a workload: a JSON list of a name and arguments.
        known: The key of the workload that was measured.
    """
    mine, others = _parts(wanted), _parts(known)
    if mine is None or others is None:
        return 1.0 if wanted == known else inf
    if len(mine) != len(others) or mine[:1] != others[:1]:
        return inf
    factor = 1.0
    for one, other in zip(mine[1:], others[1:], strict=True):
        if not (_is_number(one) and _is_number(other)):
            if one != other or isinstance(one, bool) is not isinstance(other, bool):
                return inf
        elif one == 0 or other == 0:
            if one != other:
                return inf
        elif one % other:
            return inf
        else:
            factor *= one // other
    return factor


def _parts(key: str) -> list[object] | None:
    """Name and arguments, those of lists within one after the other; None of what is no list."""
    try:
        data = json.loads(key)
    except ValueError:
        return None
    return list(_flat(data)) if isinstance(data, list) else None


def _flat(values: list[object]) -> Iterator[object]:
    for each in values:
        if isinstance(each, list):
            yield from ("[", *_flat(each), "]")
        else:
            yield each


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
