"""The request of a run as flags of the command line, so that a report says how to repeat it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any

from intarsia.measure.sizes.dim_sizes import DimSizes, SizesArgument
from intarsia.report.run_records import RunRequest
from intarsia.support.version import VERSION
from intarsia.target import Target
from intarsia.transform import Pass


def run_request(
    *,
    budget: str | float,
    seed: int,
    trials: int | None,
    targets: Sequence[Target | str] | Target | str | None,
    threads: int | None,
    shapes: Mapping[str, Sequence[int | str]] | None,
    dims: Mapping[str, SizesArgument] | None,
    pipeline: str | None,
    passes: Sequence[Pass | str] | None,
    tolerance: float | None,
    inputs: Mapping[str, Any] | None,
    partitions: bool,
    calibration: object = None,
    max_drop: float | None = None,
    metric: object = None,
    **switches: object,
) -> RunRequest:
    """Return the request of a run.

    Args:
        budget: Time of the run, as `tune` takes it.
        seed: Random seed.
        trials: Maximum number of measured candidates.
        targets: Targets to compare; None for all.
        threads: Number of threads.
        shapes: Shapes of inputs.
        dims: Sizes of symbolic dimensions.
        pipeline: Name of a pipeline.
        passes: Tuning passes.
        tolerance: Allowed error.
        calibration: Inputs to quantise by: a path, or arrays.
        max_drop: Allowed drop of the metric.
        metric: Name of the metric, or a function.
        inputs: Input arrays.
        partitions: Whether toolchains may run parts.
        switches: Further options of `tune` by name; those that are false or None are left out.
    """
    values: list[tuple[str, object]] = [("budget", _budget_text(budget)), ("seed", seed), ("trials", trials)]
    listed = [targets] if isinstance(targets, Target | str) else targets or ()
    values += [("target", str(target)) for target in listed]
    values += [("threads", threads), *(("shape", text) for text in _shapes(shapes or {}))]
    values += [("shape", _dim_text(name, DimSizes.read(name, sizes))) for name, sizes in (dims or {}).items()]
    is_path = isinstance(calibration, str | PathLike)
    values += [("pipeline", pipeline), ("tolerance", tolerance)]
    values += [("calibration", calibration if is_path else None), ("max-drop", max_drop)]
    if max_drop is not None and isinstance(metric, str):
        values.append(("metric", metric))
    if passes is not None:
        values.append(("passes", ", ".join(map(str, passes)) or "none"))
    flags = [(f"--{name}", str(value)) for name, value in values if value is not None]
    flags += [
        (f"--{name.replace('_', '-')}", "" if value is True else str(value))
        for name, value in switches.items()
        if value is not None and value is not False
    ]
    notes = [*_notes(shapes or {}, inputs, partitions)]
    if calibration is not None and not is_path:
        notes.append("calibration arrays were given, which a report does not contain")
    return RunRequest(VERSION, tuple(flags), tuple(notes))


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
    shapes: Mapping[str, Sequence[int | str]], inputs: Mapping[str, Any] | None, partitions: bool
) -> Iterator[str]:
    for name, shape in shapes.items():
        if not _is_fixed(shape):
            yield f"the input {name} has the shape ({', '.join(map(str, shape))}), which flags do not express"
    if inputs:
        yield f"input arrays were given, which a report does not contain: {', '.join(inputs)}"
    if not partitions:
        yield "parts of the model were not given to different toolchains (partitions=False)"
