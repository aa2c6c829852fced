"""What was decided best before, found again (apply-history-best), and models of cost."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

from intarsia.ir import IRModule, structural_digest
from intarsia.measure.database import Database, RunRecord
from intarsia.support.digest import digest_text
from intarsia.support.errors import UsageError
from intarsia.target import Host, Target
from intarsia.tune.trace import Trace

CostModel: TypeAlias = Callable[[Trace], float]
"""What a trace is expected to cost, without measuring it."""


def query_cost_model(cost_model: CostModel, trace: Trace) -> float:
    """What a trace is expected to cost; infinite if it cannot work (seed relax_pass_infra)."""
    return float(cost_model(trace))


def keep_trace(trace: Trace, target: Target, host: Host, database: Database) -> None:
    """Keep the best trace of a program; one that is kept and costs less stays.

    Raises:
        UsageError: The trace was not evaluated.
        DatabaseError: It cannot be kept.
    """
    if trace.perf is None:
        raise UsageError("this trace was not evaluated", help="evaluate([trace], ctx) does that")
    known = _kept(trace.in_mod, target, host, database)
    if known is not None and known.perf is not None and known.perf <= trace.perf:
        return
    workload = structural_digest(trace.in_mod)
    key = _key(workload, target, host)
    database.keep_run(RunRecord(key, workload, host.digest, time.time(), trace.to_json()))


def predict(mod: IRModule, target: Target, host: Host, database: Database) -> Trace:
    """The best trace that is known of a program on a machine, applied; one without decisions if none is.

    Nothing is measured (seed relax_pass_infra, predict). A trace whose decisions now lead elsewhere, with
    other versions of passes, is not used.
    """
    return _kept(mod, target, host, database) or Trace(mod)


def _kept(mod: IRModule, target: Target, host: Host, database: Database) -> Trace | None:
    found = database.find_run(_key(structural_digest(mod), target, host))
    if found is None:
        return None
    try:
        return Trace.from_json(found.outcome, mod)
    except UsageError:
        return None


def _key(workload: str, target: Target, host: Host) -> str:
    return digest_text(["best trace", workload, str(target), host.digest])
