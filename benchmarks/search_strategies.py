"""Search strategies against each other on decisions of real passes, at equal numbers of trials.

For each model and pass every point of the space is measured once, and kept in a log of evaluations; a log
that has a point already does not measure it again. Then each strategy searches the recorded costs. A number
is the cost of the best point that it found over that of the best of all, 1 at best; anytime strategies are
averaged over `--seeds` seeds. Spaces with more than `--points` points keep their first instructions only.

Usage: python -m benchmarks.search_strategies [MODEL ...] [--targets T ...] [--log FILE] [--points N]
       [--trials N [N ...]] [--seeds N] [--replay] [--json] [--markdown]

With `--replay` nothing is measured: points that the log lacks count as failed.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import inf, isfinite, prod
from pathlib import Path
from typing import Final

from benchmarks.native_kernels import format_table

from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model
from intarsia.ir import IRModule, structural_digest
from intarsia.measure.measure_input import Workload
from intarsia.measure.measurer import Measurer
from intarsia.measure.testbed import LocalTestbed, TestbedLimits
from intarsia.target import Target
from intarsia.toolchain.this_host import this_host
from intarsia.tune import strategy as strategies
from intarsia.tune.candidates import extend_trace
from intarsia.tune.evaluation_log import LoggingEvaluator, ReplayEvaluator
from intarsia.tune.evaluator import Evaluation, Evaluator
from intarsia.tune.instruction import Instruction
from intarsia.tune.measuring_evaluator import MeasuringEvaluator
from intarsia.tune.passes import TuneConvolutions, TuneFlags
from intarsia.tune.strategy import Point, SearchLimits, Strategy, Trials
from intarsia.tune.trace import Trace
from intarsia.tune.tuning_context import TuningContext
from intarsia.tune.tuning_pass import TuningPass

MODELS: Final = ("squeezenet", "mobilenet_v2", "bert_tiny", "shufflenet", "inception_v1")
TARGETS: Final = ("native", "onnxruntime", "openvino")
SEEDED: Final = ("RandomSearch", "EvolutionarySearch", "SimulatedAnnealing")
TO_THEIR_END: Final = ("Greedy", "Beam", "IntegerProgram")


@dataclass(frozen=True)
class Space:
    """The costs of all points of a decision.

    Attributes:
        name: Model, target and pass.
        choices: Keys of the choices of each instruction.
        costs: Seconds of each point.
    """

    name: str
    choices: tuple[tuple[str, ...], ...]
    costs: Mapping[Point, float]

    @property
    def best(self) -> float:
        """Cost of the best point."""
        return min(self.costs.values())


@dataclass
class KnownFirst:
    """Evaluates from a log, and measures what it lacks.

    Attributes:
        path: The log.
        measuring: Evaluator that appends to the log; None to measure nothing.
    """

    path: Path
    measuring: Evaluator | None

    def __post_init__(self) -> None:
        """Read the log."""
        self.path.touch()
        self.known = ReplayEvaluator(self.path)

    def evaluate(self, candidates: Sequence[Trace]) -> list[Evaluation]:
        """Return evaluations in the candidates' order."""
        return [self._evaluate_one(candidate) for candidate in candidates]

    def _evaluate_one(self, candidate: Trace) -> Evaluation:
        (known,) = self.known.evaluate([candidate])
        if known.fate != f"not in {self.path}" or self.measuring is None:
            return known
        (measured,) = self.measuring.evaluate([candidate])
        return measured


def decisions_of(item: TuningPass, mod: IRModule, target: Target, points: int) -> list[Instruction]:
    """Return the first instructions of a pass whose combinations are few enough."""
    asking = MeasuringEvaluator.__new__(MeasuringEvaluator)
    asking.target = target
    kept: list[Instruction] = []
    for instruction in item.instructions(Trace(mod), TuningContext(asking)):
        if prod(len(one.decisions) for one in (*kept, instruction)) <= points:
            kept.append(instruction)
    return kept


def spaces(options: argparse.Namespace) -> Iterator[Space]:
    """Measure the spaces of all models, or read them from the log."""
    with LocalTestbed.open(this_host(), limits=TestbedLimits.of_budget(60.0), seed=0) as testbed:
        for model in options.models:
            mod = from_onnx(build_model(model))
            for name in options.targets:
                target = Target.for_toolchain(name)
                measuring = MeasuringEvaluator(
                    Workload(mod, model), target, Measurer(testbed), metric="least"
                )
                log = None if options.replay else LoggingEvaluator(measuring, options.log)
                ctx = TuningContext(KnownFirst(options.log, log))
                for item in (TuneFlags(target=str(target)), TuneConvolutions(target=str(target))):
                    decided = decisions_of(item, mod, target, options.points)
                    if sum(len(one.decisions) > 1 for one in decided) > 1:
                        yield measured_space(f"{model} {name} {item.info.name}", decided, mod, ctx)


def measured_space(
    name: str, instructions: Sequence[Instruction], mod: IRModule, ctx: TuningContext
) -> Space:
    """Evaluate every point of a space."""
    choices = tuple(instruction.decisions for instruction in instructions)
    costs: dict[Point, float] = {}
    by_program: dict[str, float] = {}
    for point in product(*choices):
        candidate = extend_trace(instructions, point, Trace(mod), ctx)
        if candidate is None:
            costs[point] = inf
            continue
        digest = structural_digest(candidate.out_mod)
        if digest not in by_program:
            (evaluation,) = ctx.evaluator.evaluate([candidate])
            by_program[digest] = evaluation.perf
        costs[point] = by_program[digest]
    return Space(name, choices, costs)


def searched(space: Space, searcher: Strategy, trials: int) -> float:
    """Return the cost of the best point that a strategy finds, over that of the best of all."""
    limits = SearchLimits(trials=trials)
    tried = Trials(space.choices, lambda points: [space.costs[point] for point in points], limits)
    return space.costs[searcher.search(tried)] / space.best


def searchers(seeds: int) -> dict[str, list[Callable[[], Strategy]]]:
    """Return the strategies that there are, with one for each seed."""
    seeded: dict[str, list[Callable[[], Strategy]]] = {
        name: [partial(getattr(strategies, name), seed=seed) for seed in range(seeds)]
        for name in SEEDED
        if hasattr(strategies, name)
    }
    others = {name: [getattr(strategies, name)] for name in TO_THEIR_END if hasattr(strategies, name)}
    return {"Exhaustive": [strategies.Exhaustive], **seeded, **others}


def rows(measured: Sequence[Space], options: argparse.Namespace) -> list[tuple[str, ...]]:
    """Return a row for each space and number of trials, then the means."""
    named = searchers(options.seeds)
    lines = []
    for trials in options.trials:
        all_ratios: dict[str, list[float]] = {name: [] for name in named}
        for space in measured:
            ratios = {
                name: statistics.fmean(searched(space, make(), trials) for make in makers)
                for name, makers in named.items()
            }
            for name, ratio in ratios.items():
                all_ratios[name].append(ratio)
            size = str(len(space.costs))
            lines.append((space.name, size, str(trials), *(f"{ratio:.3f}" for ratio in ratios.values())))
        means = (statistics.fmean(filter(isfinite, ratios)) for ratios in all_ratios.values())
        lines.append(("mean", "", str(trials), *(f"{mean:.3f}" for mean in means)))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--targets", nargs="+", default=list(TARGETS))
    parser.add_argument("--log", type=Path, default=Path("strategies.jsonl"))
    parser.add_argument("--points", type=int, default=48)
    parser.add_argument("--trials", type=int, nargs="+", default=[6, 12, 24])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--replay", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    measured = list(spaces(options))
    table = rows(measured, options)
    header = ("decisions", "points", "trials", *searchers(options.seeds))
    if options.json:
        print(json.dumps([dict(zip(header, row, strict=True)) for row in table], indent=1))
    else:
        print(format_table(header, table, markdown=options.markdown))


if __name__ == "__main__":
    main()
