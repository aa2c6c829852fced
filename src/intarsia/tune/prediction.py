"""The best stored trace of a program (TVM: apply-history-best), and cost models."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf
from typing import TypeAlias

from intarsia.ir import IRModule, structural_digest
from intarsia.measure.database import Database, RunRecord
from intarsia.support.digest import digest_text
from intarsia.support.errors import UsageError
from intarsia.target import Host, Target
from intarsia.tune.trace import Trace, is_cost

CostModel: TypeAlias = Callable[[Trace], float]
"""Function from a trace to its expected cost, without measuring."""


def query_cost_model(cost_model: CostModel, trace: Trace) -> float:
    """Return the expected cost of a trace; infinite for a failure (seed relax_pass_infra)."""
    expected = float(cost_model(trace))
    return expected if is_cost(expected) else inf


def keep_trace(trace: Trace, target: Target, host: Host, database: Database) -> None:
    """Store a trace as the best of its program, unless it has failed or the stored one is at least as cheap.

    Raises:
        UsageError: The trace was not evaluated.
        DatabaseError: It cannot be kept.
    """
    if trace.perf is None:
        raise UsageError("this trace was not evaluated", help="evaluate([trace], ctx) does that")
    stored = _stored_trace(trace.in_mod, target, host, database)
    if trace.has_failed or (stored is not None and stored.cost <= trace.cost):
        return
    workload = structural_digest(trace.in_mod)
    key = _key(workload, target, host)
    database.keep_run(RunRecord(key, workload, host.digest, time.time(), trace.to_json()))


def predict(mod: IRModule, target: Target, host: Host, database: Database) -> Trace:
    """Return the best stored trace of a program on a machine, applied; a trace without decisions if none is.

    Nothing is measured (seed relax_pass_infra, predict). A stored trace is ignored if its decisions now give
    another program, as they may with other versions of passes.
    """
    return _stored_trace(mod, target, host, database) or Trace(mod)


def _stored_trace(mod: IRModule, target: Target, host: Host, database: Database) -> Trace | None:
    record = database.find_run(_key(structural_digest(mod), target, host))
    if record is None:
        return None
    try:
        return Trace.from_json(record.outcome, mod)
    except UsageError:
        return None


def _key(workload: str, target: Target, host: Host) -> str:
    return digest_text(["best trace", workload, str(target), host.digest])
