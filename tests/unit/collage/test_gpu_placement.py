"""Programs are divided between CPU and GPU by measuring, in worker processes with a fake driver."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.gpu_on_cpu import at_hand
from tests.gpu_on_cpu.fake_machine import machine_with_gpus
from tests.pass_checks import assert_same_results
from tests.unit.measure.quick_testbed import HOST, POLICY

from intarsia.collage.device_placement.link_costs import measured_links
from intarsia.collage.tune_device_placement import CopyCost, TuneDevicePlacement
from intarsia.collage.tune_placement import TunePlacement
from intarsia.ir import IRModule
from intarsia.ir.parser import parse_module
from intarsia.measure.measure_input import Workload
from intarsia.measure.measurer import Measurer
from intarsia.measure.testbed.limits import TestbedLimits
from intarsia.measure.testbed.local import LocalTestbed
from intarsia.passes import InferType
from intarsia.target import Target, VirtualDevice
from intarsia.tune import MeasuringEvaluator, TuningContext
from intarsia.tune.target_options import marked_functions

DEVICES = (
    'VirtualDevice(cpu:0, target="cpu -toolchain=native -threads=1")',
    'VirtualDevice(cuda:0, target="cuda -toolchain=native")',
)
PLAIN = ('VirtualDevice(cpu:0, target="cpu")', 'VirtualDevice(cuda:0, target="cuda")')
BRANCHES = """
def @main(%x: Tensor[(6, 6), float32]) {
  %0 = MatMul(%x, %x);
  %1 = Softmax(%0, axis=-1);
  %2 = Exp(%x);
  %3 = MatMul(%2, %2);
  Add(%1, %3)
}"""


@pytest.fixture(autouse=True)
def _one_gpu() -> Iterator[None]:
    with machine_with_gpus():
        yield


def branches() -> IRModule:
    return InferType()(parse_module(BRANCHES))


def test_copies_from_and_to_a_gpu_are_measured() -> None:
    links = measured_links(tuple(map(VirtualDevice.parse, DEVICES)))
    assert links[0][1].cost(1 << 20) > 0
    assert links[1][0].cost(1 << 20) > 0


@pytest.mark.slow
@pytest.mark.parametrize("has_collage", [False, True])
def test_a_program_is_placed_by_measuring(has_collage: bool) -> None:
    mod = branches()
    if has_collage:
        inside = TunePlacement(targets=("cpu -toolchain=native", "cuda -toolchain=native"), covers=2)
        tuning = TuneDevicePlacement(
            devices=PLAIN, toolchains=("native",), eval_passes=(inside,), copy_cost=CopyCost()
        )
    else:
        tuning = TuneDevicePlacement(devices=DEVICES, copy_cost=CopyCost())
    limits = TestbedLimits(policy=POLICY, turn=POLICY)
    with LocalTestbed.open(HOST, workers=1, limits=limits, preload=(at_hand.__name__,)) as testbed:
        judge = MeasuringEvaluator(Workload(mod), Target.for_toolchain("native"), Measurer(testbed))
        ctx = TuningContext(judge)
        after = tuning(mod, ctx)
    children = ctx.node.children[0].children
    fates = {str(child.name): child.trace.fate for child in children if child.trace is not None}
    assert any("cuda:0" in name for name in fates), fates
    assert not any(fates.values()), fates
    assert_same_results(mod, after)
    assert all(marked.target.toolchain == "native" for marked in marked_functions(after))
