"""Whether decisions on kernels that are expected to save most do save most, against their registered order.

Models are drawn at random. Of each, every choice of every decision on native's kernels is timed within the
program, as `TuneKernelsJointly` does it, without a limit. Then the decisions are put in three orders:

registered   passes in their order, kernels with most work first: what a run without a predictor tries
roofline     by the seconds that a decision can save at most, by the roofline and the program's own rates
learned      also by what the same choices saved on similar kernels of the other drawn models

For each order the share of all savings is printed that its first decisions bring, of each kernel the first
one that is tried. Savings are those of kernels timed alone; what saves less than 5 % of its kernels is noise,
and counts as nothing. The last lines are the means over the models with savings, weighted equally.

Usage: python -m benchmarks.kernel_order [NAME or grouped:SEED ...] [--draw 6] [--seed N] [--threads 2]
       [--first 2 4 8 16] [--markdown] [--json]

A model takes about half a minute on two quiet cores.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from benchmarks.grouped_convolutions import build_network
from benchmarks.native_kernels import format_table

from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model, zoo
from intarsia.ir import IRModule
from intarsia.measure.measure_input import Workload
from intarsia.measure.measurer import Measurer
from intarsia.measure.testbed import LocalTestbed
from intarsia.native.machine.isa import Isa
from intarsia.native.roofline import Roofline
from intarsia.target import Target
from intarsia.toolchain.this_host import this_host
from intarsia.tune import MeasuringEvaluator, Trace, TuningContext
from intarsia.tune.kernel_answers import KernelAnswer, KernelAnswers
from intarsia.tune.kernels import KernelQuestion, TuneKernels, kernel_groups
from intarsia.tune.kernels.answer_features import choice_subject, kernel_features
from intarsia.tune.kernels.answered_questions import LEAST_OF_KERNELS, AnsweredQuestion, answered_questions
from intarsia.tune.kernels.choice_bundles import bundle_choices, disjoint_questions
from intarsia.tune.kernels.group_times import KernelTimes
from intarsia.tune.kernels.time_bundles import timed_variant
from intarsia.tune.kernels.timed_questions import most_saved
from intarsia.tune.passes import TuneKernelsJointly

ORDERS: Final = ("registered", "roofline", "learned")
GROUPED: Final = (6, 28)
"""Layers of a generated network, and height of its images."""
MOST_VARIANTS: Final = 16
"""Maximum number of programs that a model is built as."""


@dataclass(frozen=True, slots=True)
class TimedModel:
    """The decisions of a model, with what their choices save.

    Attributes:
        name: Name of the model.
        questions: Questions in their registered order.
        answered: Questions that were timed, by name.
        times: Times of the kernels as they are, with the roofline.
    """

    name: str
    questions: Sequence[KernelQuestion]
    answered: dict[str, AnsweredQuestion]
    times: KernelTimes

    def saving(self, question: KernelQuestion) -> float:
        """Return the seconds that the best choice of a question saves; 0 if that may be noise."""
        answered = self.answered.get(question.name)
        if answered is None:
            return 0.0
        saved = max(answered.saved.values())
        return saved if saved >= LEAST_OF_KERNELS * answered.before else 0.0

    def answers(self) -> list[KernelAnswer]:
        """Return what the choices saved, for other models."""
        kept = []
        for item in self.answered.values():
            groups = [self.times.groups[key] for key in item.question.groups]
            for choice, after in item.seconds.items():
                if groups and item.before > 0 and math.isfinite(after):
                    subject, features = choice_subject(item.question, choice, groups), kernel_features(groups)
                    kept.append(KernelAnswer(subject, features, 1 - after / item.before, self.name))
        return kept


def draw_models(count: int, seed: int) -> list[str]:
    """Return names of models: half of the zoo, half of networks that are generated."""
    chance = Random(seed)  # a sample
    names = [model.name for model in zoo()]
    drawn = chance.sample(names, min(len(names), count - count // 2))
    return [*drawn, *(f"grouped:{chance.randrange(10**6)}" for _ in range(count // 2))]


def model_of(name: str) -> IRModule:
    """Return the program of a name."""
    if name.startswith("grouped:"):
        return from_onnx(build_network(int(name.removeprefix("grouped:")), *GROUPED))
    return from_onnx(build_model(name))


def time_model(name: str, threads: int) -> TimedModel | None:
    """Time every choice of a model's decisions; None if native cannot plan it."""
    module, target = model_of(name), Target.for_toolchain("native", threads=threads)
    groups = kernel_groups(module, str(target))
    passes = [item for item in TuneKernelsJointly().passes if isinstance(item, TuneKernels)]
    questions = [question for item in passes for question in item.questions(groups, str(target))]
    bundles = bundle_choices(questions, MOST_VARIANTS)
    keys = [group.key for group in groups]
    with LocalTestbed.open(this_host()) as testbed:
        evaluator = MeasuringEvaluator(Workload(module), target, Measurer(testbed), by_decisions=True)
        ctx = TuningContext(evaluator)
        trace = Trace(module)
        timed = evaluator.time_kernels([trace, *(timed_variant(each, trace, ctx) for each in bundles)], keys)
    if timed is None or not groups or not all(map(math.isfinite, timed[0])):
        return None
    seconds = [dict(zip(keys, costs, strict=True)) for costs in timed]
    answered = {item.question.name: item for item in answered_questions(questions, bundles, seconds)}
    roofline = Roofline.measured(Isa.host(), threads)
    times = KernelTimes(seconds[0], {group.key: group for group in groups}, roofline)
    return TimedModel(name, questions, answered, times)


def shares(model: TimedModel, others: Sequence[TimedModel], first: Sequence[int]) -> dict[str, list[float]]:
    """Return the share of all savings by order, and by the number of its first decisions."""
    learned: dict[str, list[KernelAnswer]] = {}
    for answer in (answer for other in others for answer in other.answers()):
        learned.setdefault(answer.subject, []).append(answer)
    by_answers = {"roofline": KernelAnswers(), "learned": KernelAnswers(learned)}
    best = sorted(model.questions, key=lambda question: -model.saving(question))
    total = sum(map(model.saving, disjoint_questions(best)))
    result = {}
    for order in ORDERS:
        questions = list(model.questions)
        if order in by_answers:
            answers = by_answers[order]
            most = {item.name: most_saved(item, model.times, answers) for item in questions}
            questions.sort(key=lambda question: -most[question.name])
        tried = disjoint_questions(questions)
        result[order] = [sum(map(model.saving, tried[:count])) / total if total else 0.0 for count in first]
    return result


def order_record(model: TimedModel, others: Sequence[TimedModel], first: Sequence[int]) -> dict[str, Any]:
    """Return the shares of a model, with the share of its time that the best decisions save."""
    best = sorted(model.questions, key=lambda question: -model.saving(question))
    saving = sum(map(model.saving, disjoint_questions(best)))
    facts = {"model": model.name, "decisions": len(model.questions), "saving": saving / model.times.whole}
    return {**facts, **shares(model, others, first)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--draw", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--first", type=int, nargs="+", default=[2, 4, 8, 16])
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    names = options.names or draw_models(options.draw, options.seed)
    models = [model for name in names if (model := time_model(name, options.threads)) is not None]
    records = [
        order_record(model, [other for other in models if other is not model], options.first)
        for model in models
    ]
    if options.json:
        print(json.dumps(records, indent=1))
        return
    gaining = [record for record in records if any(record["roofline"]) or any(record["registered"])]
    rows = [
        [record["model"], str(record["decisions"]), order, *(f"{share:.2f}" for share in record[order])]
        for record in gaining
        for order in ORDERS
    ]
    for order in ORDERS:
        means = [statistics.fmean(column) for column in zip(*(item[order] for item in gaining), strict=True)]
        rows.append(["mean", "", order, *(f"{share:.2f}" for share in means)])
    header = ["model", "decisions", "order", *(f"first {count}" for count in options.first)]
    print(format_table(header, rows, options.markdown))
    print(f"{len(records) - len(gaining)} of {len(records)} models have no decision that saves")


if __name__ == "__main__":
    main()
