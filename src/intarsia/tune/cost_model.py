"""Cost models: what a candidate is expected to cost, without measuring it (seed relax_pass_infra)."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TypeAlias

from intarsia.tune.trace import Trace, is_cost

CostModel: TypeAlias = Callable[[Trace], float]
"""Function from a trace to its expected cost, without measuring."""


def query_cost_model(cost_model: CostModel, trace: Trace) -> float:
    """Return the expected cost of a trace; infinite for a failure (seed relax_pass_infra)."""
    expected = inf if trace.has_failed else float(cost_model(trace))
    return expected if is_cost(expected) else inf
