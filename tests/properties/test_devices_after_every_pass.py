"""No pass loses a device of a planned program: what it leaves open, PlanDevicesLite fills in by itself.

This is the answer to the open question of seed virtual_device (must every pass use WithFields?); see
docs/devices.md.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.device_scenarios import SCENARIOS
from tests.effort import examples
from tests.every_pass import every_pass
from tests.properties.random_networks import networks
from tests.properties.random_programs import programs
from tests.properties.test_every_pass import agree, inputs_of

from intarsia.ir import Call, Expr, IRModule, Op, rewrite, with_fields, with_module_fields
from intarsia.op import verify
from intarsia.passes import PlanDevices
from intarsia.passes.devices.consistency import device_gaps
from intarsia.passes.devices.device_domains import DeviceConflictError
from intarsia.passes.devices.without_devices import without_devices
from intarsia.support.errors import UnsupportedModelError
from intarsia.target import UNCONSTRAINED, DeviceType, VirtualDevice
from intarsia.transform import Pass, PassContext

pytestmark = pytest.mark.quick_tests(50, also=["test_scenarios_keep_their_devices[OutlineBodies]"])

PASSES = {str(item).splitlines()[0]: item for item in every_pass()}
LEVEL = PassContext(opt_level=9)
CPU_0, CPU_1 = (VirtualDevice(DeviceType.CPU, number) for number in (0, 1))
DEVICES = (CPU_0, CPU_1, VirtualDevice(DeviceType.MOCK, 0))
FEWER = {"CollagePartition": (CPU_0, CPU_1), "PartitionWhole": (CPU_0,)}
"""Devices for passes that refuse others: those without a toolchain, or more than one."""

EXAMPLES = settings(
    max_examples=examples(8, quick=2),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.fixture(params=PASSES, scope="module")
def item(request: pytest.FixtureRequest) -> Pass:
    return PASSES[request.param]


@st.composite
def planned(draw: st.DrawFn, made: st.SearchStrategy[IRModule], item: Pass) -> IRModule:
    """A planned program with some operators on devices of their own, which a pass can take."""
    devices = FEWER.get(item.info.name, DEVICES)
    mod, source = draw(made), draw(st.randoms(use_true_random=False))
    choices = devices if len(devices) == 1 else (*devices, UNCONSTRAINED, UNCONSTRAINED)

    def rule(expr: Expr) -> Expr:
        is_operator = isinstance(expr, Call) and isinstance(expr.op, Op)
        return with_fields(expr, virtual_device=source.choice(choices)) if is_operator else expr

    main = rewrite(mod["main"], rule)
    return PlanDevices()(with_module_fields(mod, functions={**mod.functions, mod.global_var("main"): main}))  # type: ignore[dict-item]  # the kind stays


def check(item: Pass, mod: IRModule) -> IRModule:
    """The program after a pass: whole, and with a device for everything."""
    after = item(mod, LEVEL)
    verify(after)
    assert list(device_gaps(after)) == [], f"{item} makes of\n{mod}\nthis\n{after}"
    return after


@EXAMPLES
@given(st.data())
def test_programs_keep_their_devices(item: Pass, data: st.DataObject) -> None:
    mod = data.draw(planned(programs(compilers=(), annotated=False), item))
    after = check(item, mod)
    agree(without_devices(mod), without_devices(after), inputs_of(mod), item)


@EXAMPLES
@given(st.data())
def test_networks_keep_their_devices(item: Pass, data: st.DataObject) -> None:
    check(item, data.draw(planned(networks(), item)))


@pytest.fixture(scope="module")
def scenarios() -> dict[str, IRModule]:
    return {scenario.name: scenario.planned() for scenario in SCENARIOS}


def test_scenarios_keep_their_devices(item: Pass, scenarios: dict[str, IRModule]) -> None:
    for name, mod in scenarios.items():
        try:
            check(item, mod)
        except (DeviceConflictError, UnsupportedModelError):
            assert item.info.name in FEWER, name
        except AssertionError as error:
            error.add_note(f"scenario {name}")
            raise
