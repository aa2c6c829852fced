"""Convert records to and from rows of the table, and plain data for JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import Row

from intarsia.measure.database.damage import reading_row, stored_text
from intarsia.measure.database.record import Measurement, MeasureRecord, record_key
from intarsia.measure.judge.gate_report import InputSetError
from intarsia.measure.measure_input import Candidate, PlainData
from intarsia.measure.measure_result import MeasureError, MeasureResult

_TEXTS: Final = ("workload", "target", "host", "kind")
_RECORD: Final = frozenset({*_TEXTS, "trace", "measurements"})
_MEASUREMENT: Final = frozenset({"costs", "error", "message", "wall_seconds", "timestamp", "max_error"})
_CHARGED: Final = "charged_seconds"
"""Field of a measurement that those of earlier versions lack."""
_ERRORS_BY_INPUTS: Final = "errors"
"""Further field that those of earlier versions lack: a list for each input set."""
_INFINITE: Final = "inf"
"""Text for infinity, which JSON lacks."""
_SET_ERROR_TEXTS: Final = ("inputs", "verdict", "output")
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
        "max_error": None if error is None else _plain_error(error),
        **({_ERRORS_BY_INPUTS: list(map(_plain_set_error, result.errors))} if result.errors else {}),
        **({} if result.charged_seconds is None else {_CHARGED: float(result.charged_seconds)}),
    }


def _stored_measurement(fields: Mapping[str, Any]) -> Measurement:
    costs, kind, error = tuple(fields["costs"]), _ERRORS[fields["error"]], fields["max_error"]
    times = (fields["wall_seconds"], fields["timestamp"])
    infinite = math.inf if error == _INFINITE else error
    message, charged = stored_text(fields["message"]), fields.get(_CHARGED)
    errors = tuple(map(_set_error, fields.get(_ERRORS_BY_INPUTS, ())))
    return Measurement(MeasureResult(costs, kind, message, *times, infinite, charged, errors))


def _measurement(data: object) -> Measurement:
    fields = _checked(data, _MEASUREMENT, "a measurement", frozenset({_CHARGED, _ERRORS_BY_INPUTS}))
    error = fields["max_error"]
    result = MeasureResult(
        tuple(_number(cost) for cost in _list(fields["costs"], "costs are")),
        MeasureError(fields["error"]),
        read_text(fields, "message"),
        _number(fields["wall_seconds"]),
        _number(fields["timestamp"]),
        None if error is None else _error(error),
        _number(fields[_CHARGED]) if _CHARGED in fields else None,
        tuple(map(_set_error, _list(fields.get(_ERRORS_BY_INPUTS, []), "errors are"))),
    )
    return Measurement(result)


def _plain_error(error: float) -> float | str:
    """Return an error as JSON can hold it; that of NaN counts as infinite."""
    return float(error) if math.isfinite(error) else _INFINITE


def _error(value: object) -> float:
    return math.inf if value == _INFINITE else _number(value)


def _plain_set_error(error: InputSetError) -> PlainData:
    """Return the error on an input set as a short list; three digits are enough to read it."""
    numbers = (_plain_error(float(f"{number:.3g}")) for number in (error.max_rel, error.excess))
    return [error.inputs, error.verdict, error.output, *numbers]


def _set_error(data: object) -> InputSetError:
    values = _list(data, "the error on an input set is")
    if len(values) != len(_SET_ERROR_TEXTS) + 2:
        raise _bad(f"the error on an input set has 5 values, unlike {data!r}")
    texts = dict(zip(_SET_ERROR_TEXTS, values, strict=False))
    inputs, verdict, output = (read_text(texts, name) for name in _SET_ERROR_TEXTS)
    return InputSetError(inputs, verdict, output, _error(values[-2]), _error(values[-1]))


def _list(value: object, subject: str) -> list[Any]:
    if not isinstance(value, list):
        raise _bad(f"{subject} a list, unlike {value!r}")
    return value


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
