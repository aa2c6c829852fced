"""The rows of a model, measured or read from a record."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from benchmarks.integer_layers import best_times
from benchmarks.post_training.contenders import REFERENCE, Contender, contenders
from benchmarks.post_training.task import Array, Task

from intarsia.tune.quantise.output_error import relative_error

LEAST_ROUNDS: Final = 5
OPTIONS: Final = ("budget", "tolerance", "threads", "sets", "calibration")
"""Options of the command line that results depend on."""


@dataclass(frozen=True, slots=True)
class Row:
    """A contender that ran.

    Attributes:
        model: Name of the model.
        name: Name of the contender.
        seconds: Shortest time.
        quartile: First quartile of the times.
        error: Largest error on the inputs held back.
    """

    model: str
    name: str
    seconds: float
    quartile: float
    error: float


def compare(task: Task) -> list[Row]:
    """Return the rows of a model; a contender that fails is named with its reason."""
    ready: dict[str, Contender] = {}
    only = task.given.only
    for name, prepare in contenders(task):
        if only and name not in (*only, REFERENCE):
            continue
        start = time.monotonic()
        try:
            contender = prepare()
            contender(task.held_back[0])
        except Exception as error:  # foreign quantisers raise what they like
            print(f"  {name}: left out, {type(error).__name__}: {str(error).splitlines()[:1]}", flush=True)
            continue
        print(f"  {name}: ready after {time.monotonic() - start:.0f} s", flush=True)
        # An idle contender holds threads and memory: without measurements it is not kept.
        if not task.given.prepare:
            ready[name] = contender
    if task.given.prepare:
        return []
    expected = [ready[REFERENCE](inputs) for inputs in task.held_back]
    errors = {
        name: max(
            relative_error(wanted, contender(inputs))
            for inputs, wanted in zip(task.held_back, expected, strict=True)
        )
        for name, contender in ready.items()
    }
    first = task.held_back[0]
    runs = {name: _calling(contender, first) for name, contender in ready.items()}
    start = time.monotonic()
    for run in runs.values():
        run()
    fitting = int(task.given.seconds / max(1e-6, time.monotonic() - start))
    times = best_times(runs, min(task.given.rounds, max(LEAST_ROUNDS, fitting)))
    return [Row(task.name, name, *times[name], errors[name]) for name in ready]


def _calling(contender: Contender, inputs: Mapping[str, Array]) -> Callable[[], Any]:
    return lambda: contender(inputs)


def options_of(given: argparse.Namespace) -> dict[str, Any]:
    """Return the options that results depend on."""
    return {name: getattr(given, name) for name in OPTIONS}


def recorded(name: str, given: argparse.Namespace) -> list[Row]:
    """Return the rows of a model in the record that were measured with the same options."""
    if given.record is None or not given.record.exists():
        return []
    lines = map(json.loads, given.record.read_text().splitlines())
    alike = [
        line for line in lines if line["model"] == name and line.pop("options", None) == options_of(given)
    ]
    return [Row(**line) for line in alike]


def record(rows: list[Row], given: argparse.Namespace) -> None:
    """Append rows to the record, if there is one."""
    if given.record is not None:
        with given.record.open("a") as file:
            lines = [{**asdict(row), "options": options_of(given)} for row in rows]
            file.writelines(json.dumps(line) + "\n" for line in lines)
