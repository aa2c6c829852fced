"""Results of NonMaxSuppression as outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from intarsia.ir import ABSENT, Call, Expr, IRModule
from intarsia.measure.judge.output_check import OutputCheck
from intarsia.measure.judge.reference_runs import ReferenceRuns
from intarsia.measure.judge.steps.arguments import argument_noise, is_exact
from intarsia.measure.judge.steps.movement import operator_name, outputs_of
from intarsia.measure.judge.steps.suppression_check import SuppressionCheck
from intarsia.op.known_value import known_value

_MOST, _THRESHOLD, _LEAST = 2, 3, 4


class SuppressionRule:
    """Selected boxes, judged by scores and overlaps."""

    def exposed(self, module: IRModule) -> Mapping[str, Expr]:
        """See CheckRule.exposed."""
        values: dict[str, Expr] = {}
        for number, output in enumerate(outputs_of(module)):
            if isinstance(output, Call) and _is_claimed(output):
                values |= {
                    f"suppression{number}.boxes": output.args[0],
                    f"suppression{number}.scores": output.args[1],
                }
        return values

    def checks(self, module: IRModule, runs: ReferenceRuns) -> Sequence[OutputCheck]:
        """See CheckRule.checks."""
        found = (
            _check(number, output, runs)
            for number, output in enumerate(outputs_of(module))
            if isinstance(output, Call) and _is_claimed(output)
        )
        return [check for check in found if check is not None]


def _is_claimed(call: Call) -> bool:
    """Whether a call is a suppression whose limits are known, of computed boxes or scores."""
    if operator_name(call) != "NonMaxSuppression" or all(map(is_exact, call.args[:2])):
        return False
    return all(
        _limit(call, position) is not None
        for position in range(2, len(call.args))
        if _is_given(call, position)
    )


def _is_given(call: Call, position: int) -> bool:
    return position < len(call.args) and call.args[position].checked_type != ABSENT


def _limit(call: Call, position: int) -> float | None:
    """The value of a limit; None if it is absent or not known."""
    value = known_value(call.args[position]) if _is_given(call, position) else None
    return None if value is None or value.size != 1 else float(value.reshape(-1)[0])


def _check(number: int, call: Call, runs: ReferenceRuns) -> SuppressionCheck | None:
    keys = [f"suppression{number}.{name}" for name in ("boxes", "scores")]
    values = [runs.exposed.get(key) for key in keys]
    noises = [argument_noise(runs, key) for key in keys]
    if values[0] is None or values[1] is None or noises[0] is None or noises[1] is None:
        return None
    limits = [
        0.0 if is_exact(arg) else float(noise.max(initial=0))
        for arg, noise in zip(call.args[:2], noises, strict=True)
        if noise is not None
    ]
    return SuppressionCheck(
        position=number,
        name=runs.names[number],
        expected=runs.outputs[number],
        boxes=values[0],
        scores=values[1],
        most=int(np.minimum(_limit(call, _MOST) or 0, values[1].shape[-1])),
        threshold=_limit(call, _THRESHOLD) or 0.0,
        least=_limit(call, _LEAST),
        is_centered=bool(call.attrs.get("center_point_box", 0)),
        delta=limits[1],
        noise=limits[0],
    )
