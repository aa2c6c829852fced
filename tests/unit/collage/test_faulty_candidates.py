"""Toolchains that crash, hang or answer wrongly on some candidates never win, and never stop the search."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.collage_programs import main_graph
from tests.collage_testbeds import collage_testbed, measurements_in
from tests.faulty_toolchains import STUMBLING, stumbling_toolchains
from tests.pass_checks import assert_same_results

from intarsia.collage.collage import CollageResult, collage
from intarsia.collage.costs.captured_values import CapturedValues
from intarsia.collage.costs.cost_estimator import Estimate
from intarsia.collage.costs.measured_cost_estimator import MeasuredCostEstimator
from intarsia.collage.gather_specs import gather_partition_specs
from intarsia.ir import Call, DType, Function, IRModule, Op, TensorType, Var, post_order
from intarsia.measure.database import Database
from intarsia.measure.measure_input import Workload
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.measurer import Measurer
from intarsia.op import call, verify
from intarsia.target import Target

pytestmark = pytest.mark.processes

RUN_SECONDS = 12.0
"""What a candidate that hangs costs."""


@pytest.fixture(autouse=True)
def toolchains() -> Iterator[None]:
    with stumbling_toolchains():
        yield


def model() -> IRModule:
    """Tanh, over which three toolchains stumble, between operators that all of them run well."""
    x = Var("x", checked_type=TensorType((2, 3), DType.FLOAT32))
    return IRModule.from_expr(Function((x,), call("Abs", call("Neg", call("Tanh", call("Relu", x))))))


def has_tanh(function: Function) -> bool:
    exprs = post_order(function)
    return any(isinstance(one, Call) and isinstance(one.op, Op) and one.op.name == "Tanh" for one in exprs)


def searched(mod: IRModule, database: Database) -> CollageResult:
    with collage_testbed(run_seconds=RUN_SECONDS) as testbed:
        values = CapturedValues.of(Workload(mod), main_graph(mod), testbed)
        estimator = MeasuredCostEstimator(Measurer(testbed, database), mod, values)
        specs = gather_partition_specs([Target.for_toolchain(one.name) for one in STUMBLING])
        return collage(mod, specs, estimator)


def test_faults_lose_only_themselves(tmp_path: Path) -> None:
    mod = model()
    with Database.open(tmp_path / "measurements.db") as database:
        found = searched(mod, database)
        check_estimates(found)
        check_placements(found, mod)
        count = len(measurements_in(database))
        again = searched(mod, database)
        assert len(measurements_in(database)) == count, "nothing is measured a second time, failures neither"
        assert again.functions[0].measured == 0
        assert again.best == found.best


def check_estimates(found: CollageResult) -> None:
    """Each fault is called what it is, and hits the candidates with the operator alone."""
    expected = {
        "crashes_on_tanh": MeasureError.CRASH,
        "hangs_on_tanh": MeasureError.RUN_TIMEOUT,
        "wrong_on_tanh": MeasureError.WRONG_ANSWER,
    }
    seen: set[str] = set()
    for candidate, estimate in found.functions[0].estimates.items():
        name = candidate.spec.name
        if name in expected and "Tanh" in candidate.sub_graph.label:
            seen.add(name)
            assert estimate.error is expected[name], (name, estimate.message)
            assert estimate.message
        elif name != "reference":
            check_right(candidate.name, estimate)
    assert seen == set(expected)


def check_right(name: str, estimate: Estimate) -> None:
    assert estimate.cost.is_value, (name, estimate.message)


def check_placements(found: CollageResult, mod: IRModule) -> None:
    """The operator goes to the slow one, the rest to fast ones; all covers that were found compute right."""
    for record in found.placements:
        after = record.placement.applied(mod)
        verify(after)
        runners = {str(one.attrs["Compiler"]) for one in after.graph_functions.values() if has_tanh(one)}
        assert runners == {"slow"}
        assert_same_results(mod, after)
    fast = {part.toolchain for part in found.best.partitions if part.label != "Tanh"}
    assert fast
    assert "slow" not in fast
