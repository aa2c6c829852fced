"""Compare the size of a workload with that of a measured one."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import TypeGuard

from intarsia.support.json_text import parse_json_text


def calc_workload_dis_factor(wanted: str, measured: str) -> float:
    """Return by which factor a workload is larger than a measured one; inf if they are not compatible.

    Names must be equal. A number must be a multiple of the measured one, a zero must meet a zero, and any
    other argument must be equal. The factor is the product of the quotients.

    Args:
        wanted: Key of a workload: a JSON list of a name and arguments.
        measured: Key of the workload that was measured.
    """
    wanted_parts, measured_parts = _parts(wanted), _parts(measured)
    if wanted_parts is None or measured_parts is None:
        return 1.0 if wanted == measured else inf
    if len(wanted_parts) != len(measured_parts) or wanted_parts[:1] != measured_parts[:1]:
        return inf
    factor = 1.0
    for left, right in zip(wanted_parts[1:], measured_parts[1:], strict=True):
        if not (_is_number(left) and _is_number(right)):
            if left != right or isinstance(left, bool) is not isinstance(right, bool):
                return inf
        elif left == 0 or right == 0:
            if left != right:
                return inf
        elif left % right:
            return inf
        else:
            factor *= left // right
    return factor


def _parts(key: str) -> list[object] | None:
    """Return name and arguments with inner lists flattened; None if the key is no list."""
    try:
        data = parse_json_text(key)
    except ValueError:
        return None
    return list(_flat(data)) if isinstance(data, list) else None


def _flat(values: list[object]) -> Iterator[object]:
    for value in values:
        if isinstance(value, list):
            yield from ("[", *_flat(value), "]")
        else:
            yield value


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
