"""Measured histories as lines of a log, in TVM's format.

{"i": [["test", "llvm"], [[], [["SP", 2, 0, 512, [16], 1]]]], "r": [[0.1], 0, 0.2, 1], "v": "v0.6"}

Lines that begin with `#` or a blank are comments. The comment `# confirmed` marks the record before it as the
winner of a confirmation; TVM skips it like any comment.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from intarsia.native.loop_state.step_json import step_from_json
from intarsia.native.loop_state.step_record import step_to_json
from intarsia.native.loop_state.steps import TransformStep
from intarsia.support.errors import DatabaseError, UsageError
from intarsia.support.json_text import parse_json_text

VERSION: Final = "v0.6"
"""Version of the format that is written."""
VERSIONS: Final = ("v0.2", "v0.3", "v0.4", "v0.5", VERSION)
"""Versions of the format that are read; older ones have fewer fields of the task."""
CONFIRMED: Final = "# confirmed"
"""Comment line that marks the record before it as the winner of a confirmation."""
HARDWARE_FIELDS: Final = 8
TASK_FIELDS: Final = 6


@dataclass(frozen=True, slots=True)
class RecordTask:
    """The task of a record: computation and target; later fields may be missing in the log.

    Attributes:
        workload_key: Key of the workload, a name or a JSON text.
        target: Target as text.
        hardware_params: Eight numbers: cores, vector size in bytes, cache line size in bytes, and five for
            GPUs.
        target_host: The target that calls kernels, as text; "" if there is none.
        layout_rewrite_option: Number of a LayoutRewriteOption.
        task_input_names: Names of tensors whose contents matter.
    """

    workload_key: str
    target: str
    hardware_params: tuple[int, ...] | None = None
    target_host: str | None = None
    layout_rewrite_option: int | None = None
    task_input_names: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class RecordResult:
    """The result of a measurement.

    Attributes:
        costs: Time of each run in seconds; for a failure () or TVM's large number.
        error_no: Error number, 0 for success.
        all_cost: Duration of the measurement in seconds.
        timestamp: Time of the measurement in seconds since 1970.
    """

    costs: tuple[float, ...]
    error_no: int
    all_cost: float
    timestamp: int


@dataclass(frozen=True, slots=True)
class Record:
    """A line of the log.

    Attributes:
        task: Task of the record.
        steps: Measured history.
        result: Result of the measurement.
        version: Version of the format.
        is_confirmed: Whether the schedule has won a confirmation: the finalists were measured again,
            interleaved, and this is the best of them. It supersedes all earlier records of its task.
    """

    task: RecordTask
    steps: tuple[TransformStep, ...]
    result: RecordResult
    version: str = VERSION
    is_confirmed: bool = False


def record_to_text(record: Record) -> str:
    """Return the lines of a record, with line breaks: the record, and its mark if it is confirmed."""
    # The mark comes last, so that a writer that is killed in between leaves an unmarked record and never a
    # mark that a later record inherits.
    mark = f"{CONFIRMED}\n" if record.is_confirmed else ""
    return f"{record_to_line(record)}\n{mark}"


def record_to_line(record: Record) -> str:
    """Return a record as a line without a line break; the task ends at its first missing field.

    The line has no place for the mark of a confirmed record; `record_to_text` writes it.
    """
    record_task = record.task
    optional = (
        *(record_task.hardware_params, record_task.target_host),
        *(record_task.layout_rewrite_option, record_task.task_input_names),
    )
    task: list[Any] = [record_task.workload_key, record_task.target]
    for value in optional:
        if value is None:
            break
        task.append(list(value) if isinstance(value, tuple) else value)
    result = record.result
    data = {
        "i": [task, [[], [step_to_json(step) for step in record.steps]]],
        "r": [list(result.costs), result.error_no, result.all_cost, result.timestamp],
        "v": record.version,
    }
    return json.dumps(data)


def record_from_line(line: str) -> Record:
    """Parse the record of a line.

    Raises:
        DatabaseError: It is no JSON, its version is unknown, or a field does not fit.
    """
    try:
        data = parse_json_text(line)
        if not isinstance(data, dict) or data.get("v") not in VERSIONS:
            found = data.get("v") if isinstance(data, dict) else None
            raise DatabaseError(f"found version {found!r}; expected one of {', '.join(VERSIONS)}")
        task, (_, steps) = data["i"]
        costs, error_no, all_cost, timestamp = data["r"]
        result = RecordResult(tuple(map(float, costs)), int(error_no), float(all_cost), int(timestamp))
        return Record(_task(task), tuple(map(step_from_json, steps)), result, data["v"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        help_text = 'a record is {"i": [task, [[], steps]], "r": [costs, error, seconds, time], "v": version}'
        raise DatabaseError(f"{line!r:.60} is no record: {error}", help=help_text) from error
    except UsageError as error:
        raise DatabaseError(f"{line!r:.60} is no record: {error.problem}") from error


def read_records(lines: Iterable[str], name: str = "log") -> Iterator[Record]:
    """Yield the records of the lines of a log.

    Args:
        lines: Lines of the log.
        name: Name of the log in error messages.

    Raises:
        DatabaseError: A line is damaged; a note has its number.
    """
    waiting: Record | None = None
    for number, line in enumerate(lines, 1):
        if waiting is not None and line.rstrip() == CONFIRMED:
            waiting = replace(waiting, is_confirmed=True)
        if line.strip() and line[0] not in "# ":
            if waiting is not None:
                yield waiting
            try:
                waiting = record_from_line(line)
            except DatabaseError as error:
                error.add_note(f"in line {number} of {name}")
                raise
    if waiting is not None:
        yield waiting


def _task(data: list[Any]) -> RecordTask:
    key, target, *optional = data
    if not (isinstance(key, str) and isinstance(target, str)):
        raise TypeError("workload key and target are texts")
    if len(optional) > TASK_FIELDS - 2:
        raise ValueError(f"the task has {len(data)} fields; expected 2 to {TASK_FIELDS}")
    optional += [None] * (TASK_FIELDS - len(data))
    hardware, host, option, names = optional
    return RecordTask(
        key,
        target,
        None if hardware is None else _hardware(hardware),
        None if host is None else str(host),
        None if option is None else int(option),
        None if names is None else tuple(map(str, names)),
    )


def _hardware(values: list[int]) -> tuple[int, ...]:
    if len(values) != HARDWARE_FIELDS:
        raise ValueError(f"found {len(values)} hardware parameters; expected {HARDWARE_FIELDS}")
    return tuple(map(int, values))
