"""`intarsia verify`: check results against the reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from intarsia.cli.arguments.options import (
    Inputs,
    ModelOrArtifact,
    Ranges,
    Seed,
    ShapesAndSizes,
    Threads,
    Toolchains,
)
from intarsia.cli.arguments.trust import RequireSignature, Trust, Untrusted
from intarsia.cli.console.console import Console
from intarsia.cli.reports.gate_text import MAX_ERROR_MEANS, difference_error
from intarsia.cli.reports.report import Report
from intarsia.cli.reports.table import Table
from intarsia.support.errors import CompileError, ExecutionError, IntarsiaError, UnsupportedModelError
from intarsia.support.units import NOTHING, error_text

if TYPE_CHECKING:
    from intarsia.cli.arguments.input import Array
    from intarsia.ir import IRModule
    from intarsia.measure.judge.gate import Gate
    from intarsia.measure.judge.gate_report import GateReport
    from intarsia.measure.judge.trials import Trial
    from intarsia.measure.sizes.dim_sizes import SizesArgument
    from intarsia.runtime.executable import Executable
    from intarsia.target import Target

HEADERS = ("checked", "result", "max error", "what is wrong")
SELF_TEST = "self test"


@dataclass(frozen=True, slots=True)
class _Check:
    """One comparison with the reference: its verdict, or the error that prevented it."""

    name: str
    verdict: GateReport | None
    obstacle: IntarsiaError | None = None
    outputs: Sequence[Array] = ()

    @property
    def result(self) -> str:
        if self.verdict is None:
            return "failed" if isinstance(self.obstacle, ExecutionError) else "unsupported"
        return self.verdict.verdict

    @property
    def message(self) -> str:
        if self.verdict is None:
            return "" if self.obstacle is None else self.obstacle.problem
        return self.verdict.message

    def cells(self) -> tuple[str, ...]:
        if self.verdict is None:
            return (self.name, self.result, NOTHING, self.message)
        worst = "" if self.verdict.passed else self.verdict.message
        return (self.name, self.result, error_text(self.verdict.max_rel_error), worst)

    def record(self) -> dict[str, Any]:
        verdict = self.verdict
        return {
            "name": self.name,
            "result": self.result,
            "verified": verdict is not None and verdict.passed,
            "max_error": None if verdict is None else verdict.max_rel_error,
            "message": self.message,
        }


def verify(
    context: typer.Context,
    model: ModelOrArtifact,
    *,
    toolchains: Toolchains,
    inputs: Inputs,
    shapes: ShapesAndSizes,
    ranges: Ranges,
    seed: Seed = 0,
    threads: Threads = None,
    untrusted: Untrusted = False,
    require_signature: RequireSignature = None,
) -> Report:
    """Verify results against the reference implementation.

    A model is checked on each toolchain; an artifact must also pass its self test.
    """
    from intarsia.cli.arguments.model import ModelArgument
    from intarsia.cli.arguments.program import (
        engine_targets,
        load_artifact,
        special_inputs,
        tested_shapes,
    )
    from intarsia.cli.arguments.random_rest import of_inputs, sizes_by_dim, with_random_rest
    from intarsia.cli.arguments.range import parse_ranges
    from intarsia.cli.arguments.shape import parse_shape_words
    from intarsia.cli.arguments.target import parse_target
    from intarsia.driver.shape_samples import shapes_of, sized_program, with_variants
    from intarsia.measure.inputs import with_input_ranges
    from intarsia.measure.judge.accuracy import error_bound
    from intarsia.measure.judge.sized_trials import sized_trials
    from intarsia.measure.work import random_text
    from intarsia.passes import bind_sizes
    from intarsia.support.callbacks import silent

    console: Console = context.obj
    argument = ModelArgument.parse(model)
    targets = [parse_target(name, threads) for name in (*toolchains, *filter(None, [argument.target]))]
    sizes = parse_shape_words(shapes)
    fixed = sizes.shapes
    program, trust = None, Trust(untrusted, require_signature)
    if argument.is_artifact:
        argument.refuse_choices(toolchain=targets, threads=threads)
        program = load_artifact(argument, fixed, trust)
    else:
        trust.refuse_for_models(argument.source)
    imported = argument.import_model(fixed) if program is None else program.module
    dims: dict[str, SizesArgument] = {**sizes.dims}
    if program is not None:
        dims |= sizes_by_dim(imported["main"], fixed)
    fixed = of_inputs(imported["main"], fixed)
    module = with_input_ranges(imported, parse_ranges(ranges))
    examples = {} if program is None else tested_shapes(program.executable)
    given = special_inputs(module["main"], inputs, seed, console.note)
    shown = {} if dims or fixed or given else examples
    sized = sized_program(module, dims, {**fixed, **shapes_of(given)}, console.note, shown)
    module, samples = sized.module, sized.samples
    if program is not None and samples:
        samples = with_variants(samples, program.executable.plan.variants)
    usual = bind_sizes(module, samples[0].sizes if samples else {})
    arrays = with_random_rest(usual["main"], given, fixed, seed, silent, examples)
    bound = error_bound(module)
    trials = [trial.loosened(bound) for trial in sized_trials(module, arrays, samples, seed=seed)]
    if program is None:
        checks = [_check_target(module, target, trials) for target in targets or engine_targets(threads)]
    else:
        checks = [_check_run(program.toolchains, program.executable, trials)]
        checks += _check_self_test(program.executable, imported, trials[0])
    return _report(model, trials[0].gate, checks, random_text(module))


def _check_target(module: IRModule, target: Target, trials: Sequence[Trial]) -> _Check:
    from intarsia.cli.arguments.program import compile_whole
    from intarsia.cli.arguments.target import target_text

    name = target_text(target)
    try:
        return _check_run(name, compile_whole(module, target), trials)
    except (CompileError, UnsupportedModelError) as error:
        return _Check(name, None, error)


def _check_run(name: str, executable: Executable, trials: Sequence[Trial]) -> _Check:
    """Check all input sets, the first one again, and then with its outputs in poisoned memory."""
    from intarsia.measure.judge.examination import examine, examine_buffers
    from intarsia.measure.judge.gate import run_arrays

    try:
        report = examine(executable, trials)
        if report.passed and (after := examine_buffers(executable, trials)).excess > report.excess:
            report = after
        outputs = () if report.passed else run_arrays(executable, trials[0].inputs)
        return _Check(name, report, outputs=outputs)
    except ExecutionError as error:
        return _Check(name, None, error)


def _check_self_test(executable: Executable, module: IRModule, usual: Trial) -> list[_Check]:
    """Check the self test of an artifact with the tolerances of the gate, as it is the same program.

    Where its inputs have other sizes than the usual ones, it has the tolerances of its own sizes.
    """
    from intarsia.driver.shape_samples import shapes_of, sized_program
    from intarsia.measure.judge.gate import Gate
    from intarsia.measure.judge.trials import Trial
    from intarsia.support.callbacks import silent

    test = executable.saved_test
    if test is None:
        return []
    arrays = {info.name: array for info, array in zip(executable.inputs, test.inputs, strict=True)}
    shapes = shapes_of(arrays)
    if shapes == shapes_of(dict(usual.inputs)):
        gate = usual.gate.around(test.outputs, SELF_TEST)
    else:
        gate = Gate.known(sized_program(module, {}, shapes, silent).module, test.outputs)
    trial = Trial(SELF_TEST, arrays, gate)
    return [_check_run(SELF_TEST, executable, [trial])]


def _report(model: str, gate: Gate, checks: Sequence[_Check], random_note: str) -> Report:
    document = {"model": model, "reference": gate.reference, "checks": [check.record() for check in checks]}
    table = Table(HEADERS, tuple(check.cells() for check in checks), frozenset({2}))
    lines = (f"reference result: {gate.reference}", MAX_ERROR_MEANS)
    return Report(document, (table, *lines), _error(checks, gate, random_note))


def _error(checks: Sequence[_Check], gate: Gate, random_note: str) -> IntarsiaError | None:
    wrong = [(check.name, check.verdict) for check in checks if check.verdict and not check.verdict.passed]
    if wrong:
        agreeing = gate.agreeing({check.name: check.outputs for check in checks if check.result == "wrong"})
        return difference_error(wrong, agreeing, random_note)
    crashes = [check.obstacle for check in checks if isinstance(check.obstacle, ExecutionError)]
    if crashes:
        return crashes[0]
    obstacles = [check.obstacle for check in checks if check.obstacle is not None]
    return obstacles[0] if len(obstacles) == len(checks) and obstacles else None
