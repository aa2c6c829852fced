"""The differences of every value inside models, on several toolchains, from the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from intarsia.cli.arguments.model import ModelArgument
from intarsia.cli.arguments.random_rest import Note
from intarsia.cli.reports.gate_text import MAX_ERROR_MEANS
from intarsia.cli.reports.report import Report
from intarsia.cli.reports.table import Table
from intarsia.support.errors import IntarsiaError, UsageError, VerificationError
from intarsia.support.units import error_text

if TYPE_CHECKING:
    from intarsia.ir import IRModule
    from intarsia.measure.judge.gate import Gate
    from intarsia.measure.judge.gate_report import Array
    from intarsia.measure.layer_differences import LayerDifference, LayeredProgram

_MOST_ROWS: Final = 20


@dataclass(frozen=True, slots=True)
class _Contender:
    """A program with its values and their differences from the reference."""

    name: str
    outputs: Sequence[Array]
    differences: Sequence[LayerDifference]

    @property
    def first_wrong(self) -> LayerDifference | None:
        return next((item for item in self.differences if not item.report.passed), None)

    def sentence(self) -> str:
        wrong = self.first_wrong
        if wrong is None:
            return f"{self.name}: no value exceeds its tolerance"
        layer = wrong.layer
        return f"{self.name}: the first wrong value is that of {layer.name!r} ({layer.operator})"


def layer_differences_report(
    arguments: Sequence[ModelArgument],
    shapes: Mapping[str, Sequence[int]],
    files: Sequence[str],
    seed: int,
    threads: int | None,
    note: Note,
) -> Report:
    """Report the largest difference of every value inside models.

    Each model is compiled with all values as outputs, which prevents some fusions: a mistake that only the
    fused kernel makes is not shown.

    Args:
        arguments: Models with their toolchains; the first one defines the reference.
        shapes: Static shapes of the inputs.
        files: Values of --input.
        seed: Seed of random inputs.
        threads: Number of threads of each toolchain.
        note: Function that is called with notes.

    Raises:
        UsageError: An artifact is named.
        IntarsiaError: A program cannot be compiled or run.
    """
    from intarsia.cli.arguments.program import main_inputs
    from intarsia.measure.judge.gate import Gate
    from intarsia.measure.layer_differences import LayeredProgram
    from intarsia.measure.work import random_text

    for argument in arguments:
        if argument.is_artifact:
            raise UsageError(
                f"--layers compiles models again, and {argument.text} is an artifact",
                help="name models, such as MODEL@native and MODEL@onnxruntime",
            )
    module = arguments[0].import_model(shapes)
    program = LayeredProgram.of(module)
    inputs = main_inputs(module, files, shapes, seed, note)
    gate = Gate.for_module(program.module, inputs)
    contenders = [
        _contender(
            argument, module if number == 0 else argument.import_model(shapes), gate, inputs, threads, note
        )
        for number, argument in enumerate(arguments)
    ]
    return _report(contenders, program, gate, random_text(module))


def _contender(
    argument: ModelArgument,
    module: IRModule,
    gate: Gate,
    inputs: Mapping[str, Array],
    threads: int | None,
    note: Note,
) -> _Contender:
    from intarsia.cli.arguments.program import compile_model
    from intarsia.cli.arguments.target import parse_target
    from intarsia.measure.layer_differences import LayeredProgram, layer_differences
    from intarsia.measure.whole_run import run_arrays

    program = LayeredProgram.of(module)
    target = parse_target(argument.target, threads) if argument.target else None
    try:
        executable, _ = compile_model(program.module, target, threads, note)
        with executable:
            outputs = run_arrays(executable, inputs)
    except IntarsiaError as error:
        error.add_note(f"in {argument.text}")
        raise
    return _Contender(argument.text, outputs, layer_differences(program, gate, outputs))


def _report(
    contenders: Sequence[_Contender], program: LayeredProgram, gate: Gate, random_note: str
) -> Report:
    records = [_record(contenders, number) for number in range(len(program.layers))]
    worst = sorted(range(len(records)), key=lambda number: -_excess(contenders, number))[:_MOST_ROWS]
    rows = [_cells(records[number], contenders) for number in sorted(worst)]
    headers = ["node", "operator", *(f"error of {item.name}" for item in contenders)]
    if len(contenders) == 2:
        headers.append("between them")
    headers.append("result")
    if len(records) > len(rows):
        rows.append((f"... {len(records) - len(rows)} more", *("" for _ in headers[1:])))
    numeric = frozenset(range(2, len(headers) - 1))
    wrong = [item for item in contenders if item.first_wrong is not None]
    document = {
        "layers": records,
        "first_wrong": {
            item.name: None if item.first_wrong is None else item.first_wrong.layer.name
            for item in contenders
        },
        "reference": gate.reference,
    }
    lines = [
        f"reference result: {gate.reference}",
        MAX_ERROR_MEANS,
        *(item.sentence() for item in contenders),
    ]
    error = None
    if wrong:
        first = wrong[0].first_wrong
        assert first is not None
        error = VerificationError(f"{wrong[0].sentence()}: {first.report.message}", help=random_note)
    return Report(document, (Table(tuple(headers), tuple(rows), numeric), *lines), error)


def _excess(contenders: Sequence[_Contender], number: int) -> float:
    return max(item.differences[number].report.excess for item in contenders)


def _record(contenders: Sequence[_Contender], number: int) -> dict[str, Any]:
    from intarsia.measure.layer_differences import relative_difference

    layer = contenders[0].differences[number].layer
    reports = [item.differences[number].report for item in contenders]
    record: dict[str, Any] = {
        "node": layer.name,
        "operator": layer.operator,
        "max_error": [report.max_rel_error for report in reports],
        "right": [report.passed for report in reports],
    }
    if len(contenders) == 2:
        first, second = (item.outputs[layer.output] for item in contenders)
        record["difference"] = relative_difference(first, second)
    return record


def _cells(record: Mapping[str, Any], contenders: Sequence[_Contender]) -> tuple[str, ...]:
    pairs = zip(contenders, record["right"], strict=True)
    wrong = ", ".join(item.name for item, is_right in pairs if not is_right)
    errors = [error_text(value) for value in record["max_error"]]
    if "difference" in record:
        errors.append(error_text(record["difference"]))
    return (record["node"], record["operator"], *errors, f"wrong: {wrong}" if wrong else "right")
