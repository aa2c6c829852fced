"""Evaluations and traces that are kept: replay without hardware, prediction without measuring."""

from __future__ import annotations

from math import inf
from pathlib import Path

import numpy as np
import pytest
from tests.tuning_passes import CostTable, Deciding, decided, layout, parallel, planted, program
from tests.unit.tune.test_trace import COMBINE, branches

from intarsia.ir import (
    Constant,
    DType,
    Function,
    IRModule,
    TensorType,
    Var,
    structural_digest,
    structural_equal,
    with_module_fields,
)
from intarsia.ir.attributes import Attrs
from intarsia.measure.database import Database
from intarsia.op import call
from intarsia.support.errors import DatabaseError, OutputError, UsageError
from intarsia.target import Host, Target
from intarsia.transform import PassContext, Sequential
from intarsia.tune import Trace, TuningContext, predict, query_cost_model, validate
from intarsia.tune.choice import Choice
from intarsia.tune.evaluation_log import LoggingEvaluator, ReplayEvaluator
from intarsia.tune.instruction import Instruction
from intarsia.tune.prediction import keep_trace
from intarsia.tune.strategy import EvolutionarySearch, SimulatedAnnealing, Strategy

HOST, TARGET = Host.detect(), Target("cpu -toolchain=native")


def cost(mod: IRModule) -> float:
    fact = str(mod.attrs.get("fact", "0"))
    return inf if fact == "7" else 1.0 + (int(fact) * 7) % 11


@pytest.mark.parametrize("strategy", [SimulatedAnnealing(), EvolutionarySearch()], ids=str)
def test_a_recorded_run_is_repeated_without_hardware(strategy: Strategy, tmp_path: Path) -> None:
    log = tmp_path / "evaluations.jsonl"
    table = CostTable(cost)
    passes = Deciding(values=tuple(map(str, range(11))), strategy=strategy)
    first = passes(program(), TuningContext(LoggingEvaluator(table, log)))
    again = TuningContext(ReplayEvaluator(log))
    assert structural_equal(passes(program(), again), first)
    assert again.counts.measured == 0
    assert again.counts.proposed == len(table.modules)


def test_what_was_not_recorded_has_failed(tmp_path: Path) -> None:
    log = tmp_path / "evaluations.jsonl"
    LoggingEvaluator(CostTable(), log).evaluate([Trace(program())])
    other = Trace(decided(program(), "fact", "1"))
    known, unknown = ReplayEvaluator(log).evaluate([Trace(program()), other])
    assert known.perf == 1.0
    assert unknown.perf == inf
    assert "not in" in unknown.fate


def test_a_torn_last_line_is_left_out_and_a_damaged_one_reported(tmp_path: Path) -> None:
    log = tmp_path / "evaluations.jsonl"
    LoggingEvaluator(CostTable(), log).evaluate([Trace(program())])
    with log.open("a") as file:
        file.write('["half')
    assert ReplayEvaluator(log).evaluate([Trace(program())])[0].perf == 1.0
    with log.open("a") as file:
        file.write("\n[1]\n")
    with pytest.raises(DatabaseError, match=r"line 2 of .* is no evaluation"):
        ReplayEvaluator(log)
    with pytest.raises(DatabaseError, match="cannot read"):
        ReplayEvaluator(tmp_path / "missing")
    with pytest.raises(OutputError):
        LoggingEvaluator(CostTable(), tmp_path / "no" / "folder").evaluate([Trace(program())])


def test_the_best_trace_is_found_again_and_applied(tmp_path: Path) -> None:
    with Database.open(tmp_path / "kept.db") as database:
        mod = branches()
        assert predict(mod, str(TARGET), HOST, database).size == 0
        trace = Trace(mod)
        trace.add(COMBINE, "On")
        with pytest.raises(UsageError, match="not evaluated"):
            keep_trace(trace, str(TARGET), HOST, database)
        trace.fail("it crashed")
        keep_trace(trace, str(TARGET), HOST, database)
        assert predict(mod, str(TARGET), HOST, database).size == 0
        trace.perf = 2.0
        keep_trace(trace, str(TARGET), HOST, database)
        worse = Trace(mod)
        worse.perf = 3.0
        keep_trace(worse, str(TARGET), HOST, database)
        found = predict(branches(), str(TARGET), HOST, database)
        assert (found.size, found.perf) == (1, 2.0)
        assert structural_digest(found.out_mod) == structural_digest(trace.out_mod)
        assert predict(mod, str(TARGET.with_options(threads=1)), HOST, database).size == 0
        assert predict(program(), str(TARGET), HOST, database).size == 0


def weighted(seed: int, size: int = 16) -> IRModule:
    """Two products with one matrix, whose values the seed draws."""
    x = Var("x", checked_type=TensorType((4, size), DType.FLOAT32))
    weights = np.random.default_rng(seed).normal(size=(size, size)).astype(np.float32)
    products = [call("MatMul", x, Constant(weights)) for _ in range(2)]
    mod = IRModule.from_expr(Function((x,), call("Add", *products)))
    return with_module_fields(mod, attrs=Attrs({"name": f"net {seed}"}))


def test_a_trace_serves_the_same_program_with_other_weights(tmp_path: Path) -> None:
    merge = Instruction("merge", {"On": Choice("EliminateCommonSubexpr")})
    with Database.open(tmp_path / "kept.db") as database:
        trace = Trace(weighted(1))
        trace.add(merge, "On")
        trace.perf = 2.0
        keep_trace(trace, "native", HOST, database)
        found = predict(weighted(2), "native", HOST, database)
        assert (found.size, found.perf) == (1, 2.0)
        assert structural_digest(found.out_mod) == structural_digest(trace.replay(weighted(2)))
        assert predict(weighted(2, size=17), "native", HOST, database).size == 0


def test_a_cost_model_is_asked_for_a_number() -> None:
    assert query_cost_model(lambda trace: trace.size, Trace(program())) == 0.0


def test_validation() -> None:
    validate(program())
    validate(Sequential([parallel(layout())]))
    with pytest.raises(UsageError, match="got str"):
        validate("x")  # type: ignore[arg-type]


def test_replaying_joint_decisions_gives_the_program_again() -> None:
    trace = Trace(program())
    ctx = TuningContext(CostTable(planted))
    best = parallel(layout()).tune(trace, ctx)
    again = Trace.from_json(best.to_json(), program())
    assert structural_equal(again.out_mod, best.out_mod)
    assert [step.decision for step in again.steps] == ["on", "NHWC"]


def test_a_trace_is_found_under_the_settings_that_it_was_stored_under(tmp_path: Path) -> None:
    trace = Trace(branches())
    trace.add(COMBINE, "On")
    trace.perf = 1.0
    with Database.open(tmp_path / "measurements.db") as database:
        with PassContext(disabled_pass=["LoopPartition"]):
            keep_trace(trace, str(TARGET), HOST, database)
            assert predict(branches(), str(TARGET), HOST, database).size == 1
        assert predict(branches(), str(TARGET), HOST, database).size == 0
