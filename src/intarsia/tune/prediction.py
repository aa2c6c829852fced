"""The best stored trace of a program (TVM: apply-history-best)."""

from __future__ import annotations

import json
import time

from intarsia.ir import IRModule, structural_digest, with_module_fields
from intarsia.ir.attributes import NO_ATTRS
from intarsia.measure.database import Database, RunRecord
from intarsia.support.digest import digest_text
from intarsia.support.errors import IntarsiaError, UsageError
from intarsia.target import Host
from intarsia.transform import PassSettings
from intarsia.tune.trace import Trace


def keep_trace(trace: Trace, scope: str, host: Host, database: Database) -> None:
    """Store a trace as the best of its program, unless it has failed or the stored one is at least as cheap.

    Args:
        trace: Evaluated trace.
        scope: Scope of the decisions, such as the target that the program was tuned for.
        host: The machine that it was evaluated on.
        database: Database to store it in.

    Raises:
        UsageError: The trace was not evaluated.
        DatabaseError: It cannot be kept.
    """
    if trace.perf is None:
        raise UsageError("this trace was not evaluated", help="evaluate([trace], ctx) does that")
    stored = _stored_trace(trace.in_mod, scope, host, database)
    if trace.has_failed or (stored is not None and stored.cost <= trace.cost):
        return
    workload = program_structure(trace.in_mod)
    key = _key(workload, scope, host)
    outcome = json.dumps({"after": program_structure(trace.out_mod), "trace": trace.to_json()})
    database.keep_run(RunRecord(key, workload, host.digest, time.time(), outcome))


def predict(mod: IRModule, scope: str, host: Host, database: Database) -> Trace:
    """Return the best stored trace of a program on a machine, applied; a trace without decisions if none is.

    Nothing is measured (seed relax_pass_infra, predict). Traces are stored under the pass settings of the
    surrounding context, on which costs depend. Programs that differ in the values of their weights
    alone share a trace. A stored trace is ignored if its decisions now give a program of another structure,
    as they may with other versions of passes.

    Args:
        mod: The program.
        scope: Scope of the decisions, as for `keep_trace`.
        host: This machine.
        database: Database with stored traces.
    """
    return _stored_trace(mod, scope, host, database) or Trace(mod)


def program_structure(mod: IRModule) -> str:
    """Return the digest of a program without its name and the values of its weights."""
    return structural_digest(with_module_fields(mod, attrs=NO_ATTRS), weights=False)


def _stored_trace(mod: IRModule, scope: str, host: Host, database: Database) -> Trace | None:
    record = database.find_run(_key(program_structure(mod), scope, host))
    if record is None:
        return None
    try:
        kept = json.loads(record.outcome)
        trace, after = Trace.replayed(str(kept["trace"]), mod), str(kept["after"])
    except (IntarsiaError, ValueError, KeyError, TypeError):
        return None
    return trace if program_structure(trace.out_mod) == after else None


def _key(workload: str, scope: str, host: Host) -> str:
    settings = PassSettings.current().digest_parts
    return digest_text(["best trace", workload, scope, host.digest, *settings])
