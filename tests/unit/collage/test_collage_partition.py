"""The pass: by mock costs, and by measuring."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tests.collage_programs import program
from tests.collage_testbeds import collage_testbed
from tests.faulty_toolchains import Right, faulty_toolchains
from tests.mock_cost_estimator import MockCostEstimator
from tests.pass_checks import assert_facts_kept, assert_same_results, checked

from intarsia.collage import collage_partition
from intarsia.collage.collage_partition import CollagePartition
from intarsia.collage.costs import measured_costs
from intarsia.collage.costs.cost_estimator import COST_ESTIMATORS
from intarsia.ir import Call, IRModule
from intarsia.measure.testbed.local import LocalTestbed
from intarsia.op.operator_predicate import holding_operator_predicate
from intarsia.support.errors import MissingToolchainError, UnsupportedModelError, UsageError
from intarsia.target import Host
from intarsia.toolchain import registered
from intarsia.toolchain.protocol import FusionStyle
from intarsia.transform import PassContext, get_pass

CHAIN = "def @main(%x: T) { Tanh(Relu(Abs(%x))) }"
BOTH = ("right", "reference")


@pytest.fixture(autouse=True)
def toolchains(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(measured_costs, "LocalTestbed", QuickTestbed)
    mock = MockCostEstimator({"right": 1.0, "wrong": 2.0, "reference": 5.0})
    with (
        faulty_toolchains(),
        holding_operator_predicate("right", lambda call: str(call.op) != "Tanh"),
        holding_operator_predicate("wrong", lambda call: True),
        COST_ESTIMATORS.holding("mocked", mock),
    ):
        yield


class QuickTestbed:
    """Opens testbeds with few repeats."""

    @classmethod
    def open(cls, host: Host) -> LocalTestbed:
        return collage_testbed()


def runners(mod: IRModule) -> list[str]:
    return sorted(
        str(one.attrs["Compiler"]) for one in mod.graph_functions.values() if "Compiler" in one.attrs
    )


def test_by_mock_costs() -> None:
    after = checked(CollagePartition(BOTH, "mocked"), program(CHAIN))
    assert runners(after) == ["reference", "right", "right"]
    assert_facts_kept(CollagePartition(BOTH, "mocked"), program(CHAIN))


def test_options_are_plain_data() -> None:
    """So that the pass is found by name, and traces can be replayed."""
    made = get_pass("CollagePartition", targets=BOTH, estimator="mocked", budget=1000)
    assert made == CollagePartition(BOTH, "mocked", budget=1000)
    assert str(made) == 'CollagePartition{targets=["right", "reference"], estimator="mocked", budget=1000}'


def test_targets_can_have_options() -> None:
    after = CollagePartition(("cpu -toolchain=right -threads=2",), "mocked")(program(CHAIN))
    targets = {str(one.attrs["target"]) for one in after.graph_functions.values() if "target" in one.attrs}
    assert targets == {"cpu -toolchain=right -threads=2", "cpu -toolchain=reference"}


def test_depth_bounds_fused_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a toolchain that fuses operators; the next ones cost nine tenths."""
    monkeypatch.setattr(Right, "fusion_style", FusionStyle.OPERATOR)
    mod = program("def @main(%x: T) { Relu(Abs(Relu(Abs(%x)))) }")
    for depth, count in [(1, 4), (2, 2), (3, 2), (4, 1)]:
        after = CollagePartition(("right",), "mocked", max_depth=depth)(mod)
        assert runners(after) == ["right"] * count


def test_nothing_to_give_away() -> None:
    """Then nothing is measured, and the module stays as it is."""
    for text in (
        "def @main(%x: T) { (%x, %x) }",
        'def @main(%x: T) attributes {Compiler="right"} { Relu(%x) }',
    ):
        mod = program(text)
        assert CollagePartition(("right",))(mod) is mod
    assert CollagePartition(("right",))(IRModule({})).functions == {}


def test_conflicts_are_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Right, which has no Tanh, cannot lean on the reference any more."""
    monkeypatch.setattr(Right, "conflicts", frozenset({"reference"}))
    alone = CollagePartition(("right",), "mocked")(program(CHAIN))
    assert set(runners(alone)) == {"reference"}
    both = CollagePartition(("right", "wrong"), "mocked")(program(CHAIN))
    assert set(runners(both)) == {"right", "wrong"}


@pytest.mark.slow
def test_measured() -> None:
    mod = program(CHAIN)
    after = CollagePartition(("wrong", "right"), seconds=600.0)(mod)
    assert set(runners(after)) == {"right", "reference"}, "wrong is refuted, and right has no Tanh"
    assert_same_results(mod, after)


PLANNED = """
def @main(%x: T @device(cpu:0), %y: T @device(cpu:1)) {
  %0 = Relu(%x) @device(cpu:0);
  %1 = Abs(%y) @device(cpu:1);
  %2 = intarsia::device_copy(%1) @device(cpu:0);
  %3 = Add(%0, %2) @device(cpu:0);
  (%3, %0) @device(cpu:0)
}
"""


@pytest.mark.slow
def test_measured_on_two_devices() -> None:
    """Values of both devices are captured, and each part stays on its device."""
    mod = program(PLANNED)
    after = CollagePartition(("right",), seconds=600.0)(mod)
    assert set(runners(after)) == {"right"}
    devices = {
        str(function.body.op): function.body.virtual_device.virtual_device_id
        for var, function in after.graph_functions.items()
        if var.name != "main" and isinstance(function.body, Call)
    }
    assert devices["Abs"] == 1
    assert_same_results(mod, after)


@pytest.mark.slow
def test_without_time_nothing_unchecked_is_chosen() -> None:
    with pytest.raises(UnsupportedModelError, match="there was no time to measure it") as caught:
        CollagePartition(("wrong", "right"), seconds=0.0)(program(CHAIN))
    assert caught.value.help == "give the search more time"


class TestFailsClearly:
    def test_no_such_estimator(self) -> None:
        with pytest.raises(UsageError, match="unknown cost estimator 'mockd'") as caught:
            CollagePartition(BOTH, "mockd")(program(CHAIN))
        assert "mocked" in caught.value.help

    def test_no_such_toolchain(self) -> None:
        for estimator in ("measured", "mocked"):
            with pytest.raises(UsageError, match="unknown toolchain 'onnxruntme'"):
                CollagePartition(("onnxruntme",), estimator)(program(CHAIN))

    def test_a_toolchain_that_is_not_installed(self) -> None:
        with pytest.raises(MissingToolchainError, match="toolchain 'missing' is not usable"):
            CollagePartition(("missing", "right"))(program(CHAIN))

    def test_a_target_without_toolchain(self) -> None:
        with pytest.raises(UsageError, match="names no toolchain"):
            CollagePartition(("cpu -threads=2",))(program(CHAIN))

    def test_nothing_works_here(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(registered, "usable_toolchains", lambda: ())
        with pytest.raises(UsageError, match="no toolchain works here, so there is nothing to measure with"):
            CollagePartition()(program(CHAIN))

    def test_no_main(self) -> None:
        with pytest.raises(UsageError, match="no @main, so that there are no inputs to measure with"):
            CollagePartition(("right",))(program("def @f(%x: T) { Relu(%x) }"))

    def test_random_numbers(self) -> None:
        mod = program("def @main(%x: T) { Add(%x, RandomNormalLike(%x)) }")
        with pytest.raises(UnsupportedModelError, match=r"draws random numbers \(RandomNormalLike\)"):
            CollagePartition(("right",))(mod)

    @pytest.mark.slow
    def test_symbolic_shapes(self) -> None:
        mod = program("def @main(%x: Tensor[(n,), float32]) { Relu(%x) }")
        with pytest.raises(UsageError, match="input 'x' has the symbolic shape"):
            CollagePartition(("right",))(mod)


def test_the_default_takes_all_that_work_here() -> None:
    mod = program(CHAIN)
    costs = dict.fromkeys(["onnxruntime", "openvino", "right"], 1.0)
    mock = MockCostEstimator({**costs, "reference": 9.0})
    with COST_ESTIMATORS.holding("mocked", mock):
        after = CollagePartition(estimator="mocked")(mod, PassContext(opt_level=9))
    assert set(runners(after)) <= {*costs, "reference"}
    assert_same_results(mod, after, {"x": np.array([0.5, -2], np.float32)})


def test_the_module_is_found_as_a_package_of_passes() -> None:
    from importlib.metadata import entry_points

    (point,) = entry_points(group="intarsia.passes", name="collage")
    assert point.load() is collage_partition
