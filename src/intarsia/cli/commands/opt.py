"""`intarsia opt`: apply passes to a model, watch them, and print or write the program."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from intarsia.cli.arguments.opt_options import (
    Check,
    Memory,
    OptConfig,
    OptLevel,
    OptModel,
    Outputs,
    Pipeline,
    PrintAfter,
    PrintAfterAll,
    PrintAfterChanged,
    PrintBefore,
    PrintBeforeAll,
    ReduceFolder,
    Remarks,
    ReproducerFolder,
    Statistics,
    StopAfter,
    TimeLimit,
    Timing,
    VerifyEach,
)
from intarsia.cli.arguments.options import DisabledPasses, Seed, Shapes
from intarsia.cli.console.console import Console
from intarsia.cli.reports.opt_report import (
    failure_record,
    reduction_blocks,
    statistics_records,
    statistics_table,
)
from intarsia.cli.reports.pass_error import pass_error
from intarsia.cli.reports.report import Block, Report
from intarsia.support.errors import IntarsiaError, UsageError, VerificationError

if TYPE_CHECKING:
    from intarsia.driver.reproducer.find_failure import FoundFailure
    from intarsia.driver.reproducer.pass_failure import CheckLimits
    from intarsia.ir import IRModule
    from intarsia.transform import Pass, PassContext, Sequential
    from intarsia.transform.instrument import PassInstrument

DEFAULT_PASSES = "default_heuristic"
DEFAULT_SECONDS = 60.0


def opt(
    context: typer.Context,
    model: OptModel = None,
    *,
    pipeline: Pipeline = DEFAULT_PASSES,
    opt_level: OptLevel = 2,
    disable: DisabledPasses,
    config: OptConfig,
    shapes: Shapes,
    print_ir_before: PrintBefore,
    print_ir_after: PrintAfter,
    print_ir_before_all: PrintBeforeAll = False,
    print_ir_after_all: PrintAfterAll = False,
    print_ir_after_changed: PrintAfterChanged = False,
    timing: Timing = False,
    memory: Memory = False,
    stats: Statistics = False,
    remarks: Remarks = None,
    verify_each: VerifyEach = False,
    stop_after: StopAfter = None,
    check: Check = False,
    reproducer: ReproducerFolder = None,
    reduce: ReduceFolder = None,
    time_limit: TimeLimit = DEFAULT_SECONDS,
    seed: Seed = 0,
    output: Outputs,
) -> Report:
    """Apply passes to a model, and print the program.

    Tuning passes decide by measuring, which intarsia tune does; here they are an error.
    """
    from intarsia.driver.reproducer.pass_failure import CheckLimits

    limits = CheckLimits(time_limit, seed)
    if reduce is not None:
        return _reduce(reduce, model, limits, context.obj)
    if model is None:
        raise UsageError("missing argument 'MODEL'", help="intarsia opt --help")
    watch = _Watch.of(
        before=None if print_ir_before_all else print_ir_before,
        after=None if print_ir_after_all else print_ir_after,
        is_changed=print_ir_after_changed,
        chosen={"timing": timing, "memory": memory, "stats": stats, "verify": verify_each},
        stop_after=stop_after,
        remarks=remarks,
    )
    sequence = _sequence(pipeline, model)
    ctx = _context(config, disable, opt_level, watch.instruments)
    mod = _import(model, shapes, output)
    if check or reproducer is not None:
        _check(sequence, mod, ctx, limits, reproducer)
    document = {"model": model, "passes": [str(item) for item in sequence.passes]}
    try:
        with ctx:
            mod = sequence(mod, ctx)
    except Exception as error:  # what was printed until then shows where
        return Report(document | watch.document(), watch.blocks(), watch.failure(sequence, error))
    watch.require_stop()
    document |= {**watch.document(), "program": str(mod)}
    return Report(document, (*watch.blocks(), *_outcome(mod, output)))


@dataclass(frozen=True)
class _Watch:
    """The instruments of the command, and what the printing ones have printed."""

    chosen: dict[str, PassInstrument]
    printing: tuple[PassInstrument, ...]
    printed: list[str] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        before: Sequence[str] | None,
        after: Sequence[str] | None,
        is_changed: bool,
        chosen: dict[str, bool],
        stop_after: str | None,
        remarks: str | None,
    ) -> _Watch:
        """Return the instruments; None for names is every pass."""
        from intarsia.transform.instrument import (
            ChangeTracking,
            Diagnostics,
            PassMemoryInstrument,
            PassStatistics,
            PassTimingInstrument,
            PrintAfter,
            PrintBefore,
            PrintChanged,
            StopAfter,
            VerifyAfterPass,
        )

        printed: list[str] = []
        kinds: list[tuple[type[PrintBefore], Sequence[str] | None]] = [
            (PrintBefore, before),
            (PrintAfter, after),
            (PrintChanged, None if is_changed else ()),
        ]
        printing = tuple(kind(names, printed.append) for kind, names in kinds if names is None or names)
        makers: dict[str, Any] = {
            "tracking": ChangeTracking,
            "verify": VerifyAfterPass,
            "stats": PassStatistics,
            "memory": PassMemoryInstrument,
            "timing": PassTimingInstrument,
        }
        instruments = {name: make() for name, make in makers.items() if chosen.get(name, True)}
        if remarks is not None:
            instruments["remarks"] = Diagnostics(remarks)
        if stop_after is not None:
            _check_name("--stop-after", stop_after)
            instruments["stop"] = StopAfter(stop_after)
        return cls(instruments, printing, printed)

    @property
    def instruments(self) -> tuple[PassInstrument, ...]:
        """All of them; those that measure stand last, nearest to the pass."""
        return (*self.printing, *self.chosen.values())

    def require_stop(self) -> None:
        """Check that the last pass to run has run.

        Raises:
            UsageError: It has not.
        """
        from intarsia.transform.instrument import StopAfter

        stop = self.chosen.get("stop")
        if isinstance(stop, StopAfter) and not stop.is_stopped:
            raise UsageError(
                "the pass of --stop-after has not run", help="intarsia passes PIPELINE lists what runs"
            )

    def failure(self, sequence: Sequential, error: Exception) -> IntarsiaError:
        """The error of the command after an exception of its passes."""
        from intarsia.transform.bisection import raised_pass
        from intarsia.transform.instrument import ChangeTracking

        tracking = self.chosen["tracking"]
        assert isinstance(tracking, ChangeTracking)
        failure = pass_error(error, raised_pass(sequence, tracking, error))
        failure.add_note("--reproducer FOLDER writes what reproduces it")
        return failure

    def blocks(self) -> tuple[Block, ...]:
        """What they saw, as text."""
        from intarsia.transform.instrument import (
            Diagnostics,
            PassMemoryInstrument,
            PassStatistics,
            PassTimingInstrument,
        )

        blocks: list[Block] = [text.rstrip("\n") + "\n" for text in self.printed]
        for instrument in self.chosen.values():
            if isinstance(instrument, PassStatistics):
                blocks.append(statistics_table(instrument.runs))
            elif isinstance(instrument, Diagnostics):
                blocks.append((instrument.render() or "no remarks") + "\n")
            elif isinstance(instrument, PassTimingInstrument | PassMemoryInstrument):
                blocks.append(instrument.render() + "\n")
        return tuple(blocks)

    def document(self) -> dict[str, Any]:
        """What they saw, as plain data."""
        from intarsia.transform.instrument import (
            Diagnostics,
            PassMemoryInstrument,
            PassStatistics,
            PassTimingInstrument,
        )

        document: dict[str, Any] = {"printed": self.printed} if self.printing else {}
        for name, instrument in self.chosen.items():
            if isinstance(instrument, PassStatistics):
                document[name] = statistics_records(instrument.runs)
            elif isinstance(instrument, Diagnostics):
                document[name] = instrument.records()
            elif isinstance(instrument, PassTimingInstrument | PassMemoryInstrument):
                from dataclasses import asdict

                document[name] = [asdict(run) for run in instrument.runs]
        return document


def _sequence(pipeline: str, model: str) -> Sequential:
    """Return the passes of a text; they run at every level."""
    from intarsia.transform import Sequential, read_passes

    given = read_passes(pipeline)
    _refuse_tuning(given, model)
    return Sequential([item.with_info(opt_level=0) for item in given], name="opt")


def _context(
    config: Sequence[str], disable: Sequence[str], opt_level: int, instruments: Sequence[PassInstrument]
) -> PassContext:
    from intarsia.cli.arguments.pass_settings import parse_pass_context
    from intarsia.transform import PassContext

    asked = parse_pass_context(config, disable)
    return PassContext(opt_level, (), asked.disabled_pass, asked.config, instruments)


def _import(model: str, shapes: Sequence[str], output: Sequence[Path]) -> IRModule:
    """Import the model, after a check that the results can be written."""
    from intarsia.cli.arguments.model import ModelArgument
    from intarsia.cli.arguments.output import check_writable, refuse_to_replace
    from intarsia.cli.arguments.shape import parse_shapes
    from intarsia.driver.program_output import check_output

    argument = ModelArgument.parse(model)
    if argument.is_artifact:
        raise UsageError("an artifact is compiled already", help="pass the model that it was tuned from")
    for path in output:
        check_output(path)
        refuse_to_replace(path, model)
        check_writable(path)
    return argument.import_model(parse_shapes(shapes))


def _outcome(mod: IRModule, output: Sequence[Path]) -> tuple[Block, ...]:
    """Return the program's text, or the names of the files that it was written to."""
    from intarsia.driver.program_output import write_output

    if not output:
        return (str(mod),)
    files = [file for path in output for file in write_output(mod, path)]
    return (f"wrote {', '.join(map(str, files))}",)


def _check(
    sequence: Sequential, mod: IRModule, ctx: PassContext, limits: CheckLimits, folder: Path | None
) -> None:
    """Check every pass, and write the first that fails into a folder.

    Raises:
        VerificationError: A pass fails.
    """
    from intarsia.driver.reproducer.find_failure import find_failure
    from intarsia.transform.pass_order import check_order

    check_order(sequence, ctx)
    failing = find_failure(sequence, mod, ctx, limits)
    if failing is None:
        return
    failure = VerificationError(str(failing.failure), help="--reproducer FOLDER writes what reproduces it")
    if folder is not None:
        _write(failing, ctx, limits, folder)
        failure = VerificationError(str(failing.failure), help=f"intarsia opt --reduce {folder}")
        failure.add_note(f"wrote {folder}: program, constants, pipeline and versions")
    raise failure


def _write(failing: FoundFailure, ctx: PassContext, limits: CheckLimits, folder: Path) -> None:
    from intarsia.driver.reproducer.folder import Reproducer

    Reproducer.of(failing, ctx, limits.seed).write(folder)


def _reduce(folder: Path, model: str | None, limits: CheckLimits, console: Console) -> Report:
    """Replay a reproducer, and reduce its program."""
    from intarsia.driver.program_file import write_program
    from intarsia.driver.reproducer.find_failure import find_failure
    from intarsia.driver.reproducer.folder import REDUCED, Reproducer
    from intarsia.driver.reproducer.pass_failure import CheckLimits
    from intarsia.driver.reproducer.reduce import count_operators, reduce_program
    from intarsia.transform import Sequential, read_passes

    if model is not None:
        raise UsageError("--reduce takes no MODEL", help="the program is in the folder")
    reproducer = Reproducer.read(folder)
    limits = CheckLimits(limits.seconds, reproducer.seed)
    ctx = reproducer.settings.context()
    passes = [item.with_info(opt_level=0) for item in read_passes(reproducer.pipeline)]
    failing = find_failure(Sequential(passes), reproducer.mod, ctx, limits)
    if failing is None:
        text = f"no longer fails: {reproducer.failure}"
        return Report({"folder": str(folder), "fails": False}, (text,))
    before = count_operators(failing.mod)
    reduction = reduce_program(
        failing.item,
        failing.mod,
        failing.failure,
        ctx,
        limits,
        lambda count: console.note(f"{count} operators"),
    )
    files = write_program(reduction.mod, folder / REDUCED)
    document = {
        "folder": str(folder),
        "fails": True,
        "failure": failure_record(reduction.failure),
        "operators": [before, reduction.operators],
        "checks": reduction.checks,
        "program": str(reduction.mod),
    }
    return Report(document, reduction_blocks(reduction, before, ", ".join(map(str, files))))


def _check_name(option: str, name: str) -> None:
    from intarsia.transform import pass_names, pipeline_names

    if name not in (*pass_names(), *pipeline_names()):
        raise UsageError(f"{option} {name!r} is no pass", help="intarsia passes lists the passes")


def _refuse_tuning(passes: Sequence[Pass], model: str) -> None:
    """Refuse passes that need measurements.

    Raises:
        UsageError: There is one.
    """
    from intarsia.transform import Sequential
    from intarsia.tune.heuristic_pass import FeedbackPass

    for item in Sequential(passes).flattened():
        if isinstance(item, FeedbackPass):
            raise UsageError(
                f"{item.info.name} decides by measuring",
                help=f"intarsia tune {model} --passes {shlex.quote(str(item))}",
            )
