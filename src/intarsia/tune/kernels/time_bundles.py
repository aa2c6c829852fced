"""The times of kernels with choices on them, several choices in each program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import TypeAlias

from intarsia.tune.evaluator import EvaluatorOfKernels
from intarsia.tune.isolate_failures import MOST_TRIALS, isolate_failures
from intarsia.tune.kernels.choice_bundles import Bundle
from intarsia.tune.kernels.kernel_question import KernelQuestion
from intarsia.tune.trace import Trace
from intarsia.tune.tuning_context import TuningContext

BundleItem: TypeAlias = tuple[str, tuple[KernelQuestion, str]]
"""An item of a bundle: the name of a question, with the question and its choice."""


@dataclass(eq=False)
class TimedBundles:
    """Bundles of choices with the times of kernels.

    Attributes:
        before: Seconds of each group in the program as it is.
        bundles: Bundles that were timed.
        seconds: Seconds of each group with each bundle, infinite where it fails.
        failed: Texts of the choices that fail.
    """

    before: Mapping[str, float]
    bundles: list[Bundle] = field(default_factory=list)
    seconds: list[Mapping[str, float]] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def add(self, bundle: Bundle, seconds: Mapping[str, float]) -> None:
        """Add a bundle that was timed."""
        self.bundles.append(bundle)
        self.seconds.append(seconds)


def time_bundles(
    bundles: Sequence[Bundle],
    trace: Trace,
    ctx: TuningContext,
    evaluator: EvaluatorOfKernels,
    keys: Sequence[str],
) -> TimedBundles | None:
    """Time the kernels of a program with each bundle of choices; None if there is no time for it.

    A choice that cannot be built or ends its process takes its bundle with it. The choices of such a bundle
    are timed by halves, in 10 programs more at most, so that only those that fail go without a time.

    Args:
        bundles: Bundles, at least one.
        trace: Trace that ends with the program.
        ctx: Context of the pass.
        evaluator: Evaluator of kernels.
        keys: Keys of the groups.
    """

    def time_with(tried: Sequence[Bundle]) -> list[dict[str, float]] | None:
        variants = [timed_variant(bundle, trace, ctx) for bundle in tried]
        timed = evaluator.time_kernels([trace.copy(), *variants], keys)
        return None if timed is None else [dict(zip(keys, costs, strict=True)) for costs in timed]

    seconds = time_with(bundles)
    if seconds is None:
        return None
    result, left = TimedBundles(seconds[0]), MOST_TRIALS

    def works(groups: Sequence[tuple[BundleItem, ...]]) -> list[bool]:
        nonlocal left
        left -= len(groups)
        parts = [dict(group) for group in groups]
        again = time_with(parts) if parts and not ctx.control.is_over else None
        if again is None:
            return [False] * len(parts)
        for part, after in zip(parts, again[1:], strict=True):
            if _has_run(after):
                result.add(part, _as_before(after, again[0], result.before))
        return list(map(_has_run, again[1:]))

    for bundle, after in zip(bundles, seconds[1:], strict=True):
        if _has_run(after):
            result.add(bundle, after)
            continue
        failed = dict(isolate_failures(tuple(bundle.items()), works, left))
        result.add(failed, dict.fromkeys(keys, inf))
        result.failed += [f"{question.name}: {choice}" for question, choice in failed.values()]
    return result


def _has_run(seconds: Mapping[str, float]) -> bool:
    return all(map(isfinite, seconds.values()))


def _as_before(
    after: Mapping[str, float], again: Mapping[str, float], before: Mapping[str, float]
) -> dict[str, float]:
    """Return times as if they were taken beside the first times of the program as it is.

    Args:
        after: Seconds of each group with some choices.
        again: Seconds of each group as it is, taken beside them.
        before: Seconds of each group as it is, taken first.
    """
    return {
        key: seconds * before[key] / again[key] if again[key] and isfinite(again[key]) else seconds
        for key, seconds in after.items()
    }


def timed_variant(bundle: Bundle, trace: Trace, ctx: TuningContext) -> Trace:
    """Return the program with the choices of a bundle."""
    variant = trace.copy()
    for question, choice in bundle.values():
        variant.add(question.instruction(), choice, ctx)
    return variant
