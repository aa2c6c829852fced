"""Convert records to and from rows of the table, and plain data for JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import Row

from intarsia.measure.database.damage import reading_row, stored_text
from intarsia.measure.database.record import Measurement, MeasureRecord, record_key
from intarsia.measure.measure_input import Candidate, PlainData
from intarsia.measure.measure_result import MeasureError, MeasureResult

_TEXTS: Final = ("workload", "target", "host", "kind")
_RECORD: Final = frozenset({*_TEXTS, "trace", "measurements"})
_MEASUREMENT: Final = frozenset({"costs", "error", "message", "wall_seconds", "timestamp", "max_error"})
_CHARGED: Final = "charged_seconds"
"""Field of a measurement that those of earlier versions lack."""
_INFINITE: Final = "inf"
"""Text for infinity, which JSON lacks."""
_ERRORS: Final = {error.value: error for error in MeasureError}
_ENCODE: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def row_of(record: MeasureRecord) -> dict[str, object]:
    """Return the values of the columns of `RECORDS`."""
    candidate, cost = record.candidate_digest, record.cost
    return {
        "key": record_key(record.workload, record.target, record.host, candidate),
        "workload": record.workload,
        "target": record.target,
        "host": record.host,
        "candidate": candidate,
        "kind": record.kind,
        "trace": record.trace,
        "cost": cost if math.isfinite(cost) else None,
        "error": record.error.value,
        "measured_at": record.timestamp,
        "measurements": compact_json([_plain_measurement(item) for item in record.measurements]),
    }


def record_of(row: Row[Any]) -> MeasureRecord:
    """Read the record of a row with `queries.RECORD_COLUMNS`.

    Raises:
        DamagedRowError: Intarsia did not write the row.
    """
    with reading_row("a record"):
        workload, target, host, kind = map(stored_text, (row.workload, row.target, row.host, row.kind))
        measurements = tuple(map(_stored_measurement, json.loads(row.measurements)))
        return MeasureRecord(workload, target, host, kind, checked_trace(row.trace), measurements)


def checked_trace(text: object) -> str:
    """Return the decisions of a stored candidate, checked to be JSON.

    Raises:
        ValueError: They are not JSON.
        TypeError: They are no text.
    """
    json.loads(stored_text(text))
    return stored_text(text)


def plain_record(record: MeasureRecord) -> dict[str, PlainData]:
    """Return the record as plain data for `read_record`."""
    trace: PlainData = json.loads(record.trace)
    return {
        "workload": record.workload,
        "target": record.target,
        "host": record.host,
        "kind": record.kind,
        "trace": trace,
        "measurements": [_plain_measurement(item) for item in record.measurements],
    }


def read_record(data: object) -> MeasureRecord:
    """Read a record from untrusted plain data.

    Raises:
        ValueError: It is none; the message says why.
    """
    fields = _checked(data, _RECORD, "a record")
    texts = {name: read_text(fields, name) for name in _TEXTS}
    measurements = fields["measurements"]
    if not isinstance(measurements, list):
        raise _bad(f"measurements are a list, unlike {measurements!r}")
    candidate = Candidate(texts["kind"], fields["trace"])
    return MeasureRecord(**texts, trace=candidate.text, measurements=tuple(map(_measurement, measurements)))


def read_text(fields: Mapping[str, Any], name: str) -> str:
    """Return a field that is a text.

    Raises:
        ValueError: It is missing, or no text.
    """
    value = fields.get(name)
    if not isinstance(value, str):
        raise _bad(f"{name!r} is a text, unlike {value!r}")
    return value


def compact_json(data: object) -> str:
    """Return JSON in ASCII without spaces."""
    return _ENCODE(data)


def _plain_measurement(measurement: Measurement) -> PlainData:
    result, error = measurement.result, measurement.result.max_error
    return {
        "costs": list(map(float, result.costs)),  # whatever number they are, NumPy's too
        "error": result.error.value,
        "message": result.message,
        "wall_seconds": float(result.wall_seconds),
        "timestamp": float(result.timestamp),
        "max_error": None if error is None else _INFINITE if error == math.inf else float(error),
        **({} if result.charged_seconds is None else {_CHARGED: float(result.charged_seconds)}),
    }


def _stored_measurement(fields: Mapping[str, Any]) -> Measurement:
    costs, kind, error = tuple(fields["costs"]), _ERRORS[fields["error"]], fields["max_error"]
    times = (fields["wall_seconds"], fields["timestamp"])
    infinite = math.inf if error == _INFINITE else error
    message, charged = stored_text(fields["message"]), fields.get(_CHARGED)
    return Measurement(MeasureResult(costs, kind, message, *times, infinite, charged))


def _measurement(data: object) -> Measurement:
    fields = _checked(data, _MEASUREMENT, "a measurement", frozenset({_CHARGED}))
    costs, error = fields["costs"], fields["max_error"]
    if not isinstance(costs, list):
        raise _bad(f"costs are a list, unlike {costs!r}")
    result = MeasureResult(
        tuple(_number(cost) for cost in costs),
        MeasureError(fields["error"]),
        read_text(fields, "message"),
        _number(fields["wall_seconds"]),
        _number(fields["timestamp"]),
        None if error is None else math.inf if error == _INFINITE else _number(error),
        _number(fields[_CHARGED]) if _CHARGED in fields else None,
    )
    return Measurement(result)


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _bad(f"expected a number, found {value!r}")
    try:
        return float(value)
    except OverflowError as error:
        raise ValueError(f"{value} is too large") from error


def _checked(
    data: object, names: frozenset[str], what: str, optional: frozenset[str] = frozenset()
) -> Mapping[str, Any]:
    if not isinstance(data, dict):
        raise _bad(f"{what} is an object, unlike {data!r}")
    if missing := sorted(names - data.keys()):
        raise ValueError(f"{what} has no {missing[0]!r}")
    if unknown := sorted(data.keys() - names - optional):
        raise ValueError(f"{what} has an unknown {unknown[0]!r}")
    return data


def _bad(problem: str) -> ValueError:
    """Return a ValueError for untrusted data of the wrong type; a TypeError would mean a bug."""
    return ValueError(problem)
