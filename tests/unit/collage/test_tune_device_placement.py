"""TuneDevicePlacement: against brute force, with Collage inside, and measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from math import inf, nan

import pytest
from tests.mock_cost_estimator import MockCostEstimator
from tests.pass_checks import assert_same_results
from tests.tuning_passes import CostTable
from tests.unit.measure.quick_testbed import POLICY

from intarsia.collage.costs.cost_estimator import COST_ESTIMATORS
from intarsia.collage.device_placement.device_program import DeviceProgram
from intarsia.collage.device_placement.link_costs import measured_links
from intarsia.collage.device_placement.placed_on_devices import placed_on_devices
from intarsia.collage.tune_device_placement import AS_IT_IS, CopyCost, TuneDevicePlacement
from intarsia.collage.tune_placement import TunePlacement
from intarsia.ir import Call, Expr, Function, IRModule, children, post_order
from intarsia.ir.parser import parse_module
from intarsia.measure.measure_input import Workload
from intarsia.measure.measurer import Measurer
from intarsia.measure.testbed.limits import TestbedLimits
from intarsia.measure.testbed.local import LocalTestbed
from intarsia.op.device_call import is_device_copy
from intarsia.op.infer import infer_types
from intarsia.passes import PartitionWhole
from intarsia.support.errors import UsageError
from intarsia.target import Host, Target, VirtualDevice
from intarsia.tune import MeasuringEvaluator, Trace, TuningContext
from intarsia.tune.target_options import marked_functions

pytestmark = pytest.mark.quick_tests(
    10, also=["test_a_program_of_a_toolchain_is_left_as_it_is", "test_malformed_devices_are_refused[number]"]
)

DEVICES = tuple(
    f'VirtualDevice(cpu:{number}, target="cpu -toolchain=reference -threads=1")' for number in range(2)
)
COPY = CopyCost(seconds=1.0)
SECONDS = {"MatMul": 10.0, "Exp": 4.0, "Relu": 1.0, "Add": 1.0, "Neg": 0.5}

BRANCHES = """
def @main(%x: Tensor[(4, 4), float32]) {
  %0 = Relu(%x);
  %1 = MatMul(%0, %0);
  %2 = MatMul(%1, %0);
  %3 = Exp(%0);
  %4 = MatMul(%3, %3);
  %5 = Add(%2, %4);
  Neg(%5)
}
"""
CHAIN = "def @main(%x: Tensor[(4, 4), float32]) { Neg(MatMul(Relu(%x), %x)) }"
UNEVEN = """
def @main(%x: Tensor[(4, 4), float32], %y: Tensor[(4, 4), float32]) {
  %0 = Exp(%x);
  %1 = Neg(%y);
  %2 = MatMul(%1, %1);
  %3 = Relu(%0);
  %4 = Add(%3, %2);
  (%4, %0)
}
"""


def typed(text: str) -> IRModule:
    return infer_types(parse_module(text))


def simulated(mod: IRModule) -> float:
    """What a program takes on devices that work at the same time, read off its calls and copies.

    Each device works in the order of the program; a copy is made when something needs it.
    """
    ends: dict[Expr, float] = {}
    clocks: dict[VirtualDevice, float] = {}

    def run(call: Call, needs: Sequence[Expr], seconds: float) -> None:
        device = VirtualDevice(call.virtual_device.device_type, call.virtual_device.virtual_device_id)
        start = max([clocks.get(device, 0.0), *(ends.get(need, 0.0) for need in needs)])
        ends[call] = clocks[device] = start + seconds

    for expr in post_order(mod["main"]):
        for need in children(expr):
            if is_device_copy(need) and need not in ends:
                assert isinstance(need, Call)
                run(need, need.args, COPY.seconds)
        if isinstance(expr, Call) and not is_device_copy(expr):
            run(expr, expr.args, SECONDS[str(expr.op)])
    return max(clocks.values())


def judged(mod: IRModule) -> float:
    """Of an operator alone its seconds, of a placed program what it takes, of one that is not placed much."""
    if mod["main"].body.virtual_device.is_fully_unconstrained and not any(
        True for _ in marked_functions(mod)
    ):
        return 100.0
    given = list(marked_functions(mod))
    if given:
        (called,) = [expr for expr in post_order(given[0].function) if isinstance(expr, Call)]
        return SECONDS[str(called.op)]
    return simulated(mod)


def placing(**options: object) -> TuneDevicePlacement:
    given: dict[str, object] = {"devices": DEVICES, "copy_cost": COPY, "eval_passes": (), **options}
    return TuneDevicePlacement(**given)  # type: ignore[arg-type]  # of the tests


def copies(mod: IRModule) -> int:
    return sum(map(is_device_copy, post_order(mod["main"])))


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("text", [BRANCHES, CHAIN, UNEVEN], ids=["branches", "chain", "uneven"])
def test_it_is_as_good_as_the_best_of_all_placements(text: str) -> None:
    mod = typed(text)
    program = DeviceProgram.of(mod)
    assert program is not None
    best = min(
        simulated(placed_on_devices(mod, DEVICES, assignment))
        for assignment in product(range(2), repeat=len(program.placed))
    )
    trace = placing().tune(Trace(mod), TuningContext(CostTable(judged)))
    assert trace.perf == best
    assert_same_results(mod, trace.out_mod)


def test_branches_are_divided_if_copies_are_cheap_and_not_if_they_are_dear() -> None:
    mod = typed(BRANCHES)
    divided = placing().tune(Trace(mod), TuningContext(CostTable(judged)))
    assert copies(divided.out_mod) == 2
    whole = placing(copy_cost=CopyCost(seconds=50.0)).tune(Trace(mod), TuningContext(CostTable(judged)))
    assert copies(whole.out_mod) == 0
    assert whole.steps[0].decision == "all on cpu:0 reference"


def test_a_program_stays_on_one_device_if_that_is_fastest() -> None:
    mod = typed(BRANCHES)

    def judge(mod: IRModule) -> float:
        return min(judged(mod), 5.0) if judged(mod) == 100.0 else judged(mod)

    trace = placing().tune(Trace(mod), TuningContext(CostTable(judge)))
    assert (trace.steps[0].decision, trace.out_mod) == (AS_IT_IS, mod)


def test_regions_are_what_devices_run_by_default() -> None:
    tuning = TuneDevicePlacement(devices=DEVICES, copy_cost=COPY)
    trace = tuning.tune(Trace(typed(BRANCHES)), TuningContext(CostTable(_by_regions)))
    assert len(list(marked_functions(trace.out_mod))) >= 3
    assert_same_results(typed(BRANCHES), trace.out_mod)


def _by_regions(mod: IRModule) -> float:
    """A placement on both devices is best; operators alone cost as always."""
    if copies(mod):
        return 0.5
    calls = [e for f in marked_functions(mod) for e in post_order(f.function) if isinstance(e, Call)]
    return judged(mod) if len(calls) == 1 else 30.0


def test_each_placement_gets_its_own_collage() -> None:
    """Collage inside: parts of a placed program keep to its devices."""
    with COST_ESTIMATORS.holding("mocked", MockCostEstimator({"reference": 1.0})):
        inside = TunePlacement(targets=("cpu -toolchain=reference -threads=1",), estimator="mocked", covers=2)
        plain = [f'VirtualDevice(cpu:{number}, target="cpu -threads=1")' for number in range(2)]
        mod = typed(BRANCHES)
        tuning = placing(eval_passes=(inside,), devices=plain, toolchains=["reference"])
        trace = tuning.tune(Trace(mod), TuningContext(CostTable(_by_regions)))
    assert [step.instruction.name for step in trace.steps] == ["devices", "placement"]
    found = list(marked_functions(trace.out_mod))
    assert len(found) >= 2
    for each in found:
        inner = {expr.virtual_device.virtual_device_id for expr in post_order(each.function.body)}
        assert len(inner - {None}) == 1
    assert_same_results(mod, trace.out_mod)


def test_what_is_annotated_stays_there() -> None:
    mod = typed("""
    def @main(%x: Tensor[(4, 4), float32]) {
      %0 = Relu(%x) @device(cpu:1);
      Neg(%0)
    }
    """)
    trace = placing().tune(Trace(mod), TuningContext(CostTable(judged)))
    relu = next(
        expr
        for expr in post_order(trace.out_mod["main"])
        if isinstance(expr, Call) and str(expr.op) == "Relu"
    )
    assert relu.virtual_device.virtual_device_id == 1


def test_a_program_of_a_toolchain_is_left_as_it_is() -> None:
    mod = PartitionWhole("cpu -toolchain=reference")(typed(CHAIN))
    trace = placing().tune(Trace(mod), TuningContext(CostTable()))
    assert trace.out_mod is mod
    assert trace.steps[0].decision == AS_IT_IS


@pytest.mark.parametrize(
    ("devices", "message"),
    [
        pytest.param((), "expected one or more different devices", id="none"),
        pytest.param(DEVICES[:1] * 2, "expected one or more different devices", id="twice"),
        pytest.param(("VirtualDevice(cpu:0)",), "no number, or no target", id="target"),
        pytest.param(('VirtualDevice(cpu:0, target="cpu")',), "no toolchain compiles for", id="toolchain"),
        pytest.param(
            ('VirtualDevice(cpu, target="cpu -toolchain=reference")',), "has no number", id="number"
        ),
    ],
)
def test_malformed_devices_are_refused(devices: Sequence[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        TuneDevicePlacement(devices=tuple(devices))


def _is_alone(mod: IRModule, operator: str) -> bool:
    return any(marked_functions(mod)) and operator in str(mod)


def test_an_operator_without_a_cost_leaves_the_program_as_it_is() -> None:
    """The budget may end before all operators are measured; that is no reason to end the run."""
    mod = typed(CHAIN)
    ctx = TuningContext(CostTable(lambda each: inf if _is_alone(each, "MatMul") else judged(each)))
    assert placing()(mod, ctx) is mod
    assert "MatMul runs on none of the devices, or was not measured: the program stays as it is" in str(
        ctx.node
    )


@pytest.mark.parametrize("seconds", [-1.0, inf, nan])
def test_a_copy_costs_a_number_of_seconds(seconds: float) -> None:
    with pytest.raises(UsageError, match="a copy has seconds="):
        CopyCost(seconds=seconds)


def test_a_trace_is_replayed_elsewhere() -> None:
    mod = typed(BRANCHES)
    trace = placing().tune(Trace(mod), TuningContext(CostTable(judged)))
    again = Trace.from_json(trace.to_json(), mod)
    assert str(again.out_mod) == str(trace.out_mod)


def test_copies_are_measured() -> None:
    devices = tuple(map(VirtualDevice.parse, DEVICES))
    links = measured_links(devices)
    assert links[0][0].cost(1 << 20) == 0.0
    assert links[0][1].cost(1 << 20) > 0.0
    assert isinstance(links[1][0].seconds, float)


def test_a_wait_for_another_measurement_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def host_of_another(*, on_wait: Callable[[str], None]) -> Iterator[None]:
        on_wait("waiting for process 7")
        yield

    monkeypatch.setattr("intarsia.collage.device_placement.link_costs.exclusive_host", host_of_another)
    notes: list[str] = []
    ctx = TuningContext(CostTable(judged), on_wait=notes.append)
    placing(copy_cost=None)(typed(BRANCHES), ctx)
    assert notes == ["waiting for process 7"]


@pytest.mark.slow
def test_with_real_measurements() -> None:
    mod = typed(UNEVEN)
    with LocalTestbed.open(Host.detect(), workers=2, limits=TestbedLimits(policy=POLICY)) as testbed:
        judge = MeasuringEvaluator(Workload(mod), Target.for_toolchain("reference"), Measurer(testbed))
        ctx = TuningContext(judge)
        after = TuneDevicePlacement(devices=DEVICES, copy_cost=CopyCost())(mod, ctx)
    fates = [child.trace.fate for child in ctx.node.children[0].children if child.trace is not None]
    assert fates
    assert not any(fates)
    main = after["main"]
    assert isinstance(main, Function)
    assert_same_results(mod, after)
