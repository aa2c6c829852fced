"""The request of a run as flags of the command line, so that a report says how to repeat it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any

from intarsia.driver.dynamic_mode import DynamicMode
from intarsia.driver.stream_search.objective import LoadOptions, Objective
from intarsia.driver.tune_options import TuneOptions
from intarsia.measure.sizes.dim_sizes import DimSizes
from intarsia.report.run_records import RunRequest
from intarsia.support.version import VERSION
from intarsia.target import Target


def run_request(options: TuneOptions) -> RunRequest:
    """Return the request of a run; switches that are off are left out."""
    values: list[tuple[str, object]] = [
        ("budget", _budget_text(options.budget)),
        ("seed", options.seed),
        ("trials", options.trials),
    ]
    targets = options.targets
    listed = [targets] if isinstance(targets, Target | str) else targets or ()
    values += [("target", str(target)) for target in listed]
    values += [("threads", options.threads), *(("shape", text) for text in _shapes(options.shapes))]
    values += [("shape", _dim_text(name, DimSizes.read(name, sizes))) for name, sizes in options.dims.items()]
    is_path = isinstance(options.calibration, str | PathLike)
    values += [("pipeline", options.pipeline), ("tolerance", options.tolerance)]
    values += [("calibration", options.calibration if is_path else None), ("max-drop", options.max_drop)]
    if options.max_drop is not None and isinstance(options.metric, str):
        values.append(("metric", options.metric))
    if options.passes is not None:
        values.append(("passes", ", ".join(map(str, options.passes)) or "none"))
    flags = [(f"--{name}", str(value)) for name, value in values if value is not None]
    flags += [
        (f"--{name}", "" if value is True else str(value))
        for name, value in _switches(options)
        if value is not None and value is not False
    ]
    notes = [*_notes(options.shapes, options.inputs, options.partitions)]
    if options.calibration is not None and not is_path:
        notes.append("calibration arrays were given, which a report does not contain")
    return RunRequest(VERSION, tuple(flags), tuple(notes))


def _switches(options: TuneOptions) -> Iterator[tuple[str, object]]:
    yield "front", options.front
    yield "exact", options.exact
    yield "schedules", options.schedules
    yield "schedule-trials", options.schedule_trials
    yield "until-proven", options.until_proven
    yield "locked", options.locked
    yield "plan", options.plan
    yield from _load_flags(options.load)
    yield "dynamic", None if options.mode is DynamicMode.EAGER else options.mode.value


def _load_flags(load: LoadOptions) -> Iterator[tuple[str, object]]:
    if load.objective is not Objective.LATENCY:
        yield "objective", load.objective.value
        yield "concurrency", load.concurrency
        yield "batch", "{}..{}".format(*load.batches)


def _budget_text(budget: str | float) -> str:
    return budget if isinstance(budget, str) else f"{budget:g}s"


def _shapes(shapes: Mapping[str, Sequence[int | str]]) -> Iterator[str]:
    return (f"{name}={','.join(map(str, shape))}" for name, shape in shapes.items() if _is_fixed(shape))


def _is_fixed(shape: Sequence[int | str]) -> bool:
    return all(isinstance(dim, int) for dim in shape)


def _dim_text(name: str, sizes: DimSizes) -> str:
    """Return the sizes of a dimension as `--shape` takes them."""
    if sizes.weights:
        return f"{name}={','.join(f'{size}:{weight:g}' for size, weight in sizes.weights)}"
    low, high = sizes.range.low, sizes.range.high  # n=8 would be the shape of an input
    multiple = f"/{sizes.multiple}" if sizes.multiple > 1 else ""
    return f"{name}={low}..{high}{multiple}{'@log' if sizes.is_log else ''}"


def _notes(
    shapes: Mapping[str, Sequence[int | str]], inputs: Mapping[str, Any], partitions: bool
) -> Iterator[str]:
    for name, shape in shapes.items():
        if not _is_fixed(shape):
            yield f"the input {name} has the shape ({', '.join(map(str, shape))}), which flags do not express"
    if inputs:
        yield f"input arrays were given, which a report does not contain: {', '.join(inputs)}"
    if not partitions:
        yield "parts of the model were not given to different toolchains (partitions=False)"
