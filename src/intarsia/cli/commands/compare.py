"""`intarsia compare`: results and latencies of programs on the same inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from intarsia.cli.arguments.completion import complete_model
from intarsia.cli.arguments.options import Budget, Inputs, Seed, Shapes, Threads, Toolchains
from intarsia.cli.arguments.trust import RequireSignature, Trust, Untrusted
from intarsia.cli.console.console import Console
from intarsia.cli.reports.gate_text import MAX_ERROR_MEANS, difference_error
from intarsia.cli.reports.report import Report
from intarsia.cli.reports.table import Table
from intarsia.measure.timing.ratio_text import ratio_text
from intarsia.support.errors import IntarsiaError, UsageError
from intarsia.support.units import duration_text, error_text

if TYPE_CHECKING:
    from intarsia.cli.arguments.program import Program
    from intarsia.measure.judge.gate_report import GateReport
    from intarsia.measure.judge.trials import Trial
    from intarsia.measure.timing.interleaved import Comparison

HEADERS = ("program", "toolchain", "median", "ratio to the best", "max error", "result")
NUMERIC = frozenset({2, 4})
HELP = "Two or more models (.onnx file or zoo:NAME, each with @TOOLCHAIN if wished) or artifacts."


def compare(
    context: typer.Context,
    models: Annotated[
        list[str],
        typer.Argument(metavar="ARTIFACT|MODEL[@TOOLCHAIN]...", help=HELP, autocompletion=complete_model),
    ],
    *,
    layers: Annotated[
        bool,
        typer.Option("--layers", help="Compare every value inside the models instead, without latencies."),
    ] = False,
    toolchains: Toolchains,
    inputs: Inputs,
    shapes: Shapes,
    seed: Seed = 0,
    threads: Threads = None,
    budget: Budget = "10s",
    untrusted: Untrusted = False,
    require_signature: RequireSignature = None,
) -> Report:
    """Compare the results and latencies of models and artifacts.

    Outputs on three input sets are compared with the reference results of the first program. Latencies are
    measured interleaved, on the first set.

    With --layers every value inside the models is an output: the first one that is wrong names the operator.
    """
    from intarsia.cli.arguments.program_list import open_programs
    from intarsia.cli.arguments.shape import parse_shapes
    from intarsia.driver.budget import parse_budget
    from intarsia.driver.shape_samples import shapes_of, sized_program
    from intarsia.measure.judge.trials import trials_for
    from intarsia.measure.timing.interleaved import time_interleaved
    from intarsia.measure.timing.timing import TimingPolicy
    from intarsia.measure.work import random_text
    from intarsia.support.callbacks import silent

    console: Console = context.obj
    if layers:
        from intarsia.cli.arguments.program_list import expand_programs
        from intarsia.cli.reports.layer_differences_report import layer_differences_report

        arguments = expand_programs(models, toolchains, threads)
        return layer_differences_report(arguments, parse_shapes(shapes), inputs, seed, threads, console.note)
    seconds = parse_budget(budget)
    trust = Trust(untrusted, require_signature)
    programs = open_programs(models, parse_shapes(shapes), toolchains, threads, console.note, trust)
    if len(programs) < 2:
        raise UsageError("compare needs at least two programs, but one is given", help=HELP)
    arrays = programs[0].inputs(inputs, seed, console.note)
    # Judges that have no open dimensions draw the integers of the further sets within their axes.
    module = sized_program(programs[0].module, {}, shapes_of(arrays), silent).module
    trials = trials_for(module, arrays, seed=seed)
    verdicts = {program.name: _check(program, trials) for program in programs}
    calls = {program.name: program.bound_call(arrays) for program in programs}
    policy = TimingPolicy(max_seconds=seconds / len(calls), seed=seed)
    with console.measuring() as on_round:
        comparison = time_interleaved(calls, policy, on_round=on_round)
    contenders = [_Contender(program, verdicts[program.name], comparison) for program in programs]
    return _report(contenders, trials[0].gate.reference, random_text(programs[0].module))


def _check(program: Program, trials: Sequence[Trial]) -> GateReport:
    """Compare results on all input sets with the reference."""
    from intarsia.measure.judge.accuracy import error_bound
    from intarsia.measure.judge.examination import examine

    bound = error_bound(program.module)
    try:
        return examine(program.executable, [trial.loosened(bound) for trial in trials])
    except IntarsiaError as error:
        error.add_note(f"in {program.name}")
        raise


@dataclass(frozen=True, slots=True)
class _Contender:
    """One program with its verdict and its timing."""

    program: Program
    verdict: GateReport
    comparison: Comparison

    @property
    def is_best(self) -> bool:
        return self.comparison.best == self.program.name

    def cells(self) -> tuple[str, ...]:
        name = self.program.name
        return (
            name,
            self.program.toolchains,
            duration_text(self.comparison.timings[name].median),
            ratio_text(self.comparison.ratio(name, self.comparison.best)),
            error_text(self.verdict.max_rel_error),
            self.verdict.verdict,
        )

    def record(self) -> dict[str, Any]:
        name = self.program.name
        timing, ratio = self.comparison.timings[name], self.comparison.ratio(name, self.comparison.best)
        return {
            "program": name,
            "toolchain": self.program.toolchains,
            "latency_seconds": timing.median,
            "latency_spread": timing.spread,
            "ratio": ratio.ratio,
            "ratio_interval": [ratio.low, ratio.high],
            "max_error": self.verdict.max_rel_error,
            "verified": self.verdict.passed,
            "message": self.verdict.message,
        }


def _report(contenders: Sequence[_Contender], reference: str, random_note: str) -> Report:
    best = next(index for index, contender in enumerate(contenders) if contender.is_best)
    table = Table(HEADERS, tuple(contender.cells() for contender in contenders), NUMERIC, chosen=best)
    wrong = [(item.program.name, item.verdict) for item in contenders if not item.verdict.passed]
    document = {
        "programs": [contender.record() for contender in contenders],
        "best": contenders[best].program.name,
        "reference": reference,
    }
    lines = (f"reference result: {reference}, of {contenders[0].program.name}", MAX_ERROR_MEANS)
    return Report(document, (table, *lines), difference_error(wrong, random_note=random_note))
