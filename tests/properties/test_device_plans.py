from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given, settings
from tests.device_plans import is_right
from tests.effort import examples
from tests.fake_kernels import FUNCTIONS, fake
from tests.properties.random_device_plans import KERNELS, SIZE, device_plans

from intarsia.build import build
from intarsia.build.step_order import overlapping
from intarsia.ir import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    IRModule,
    Op,
    TensorType,
    Tuple,
    Var,
    with_fields,
)
from intarsia.op import call
from intarsia.runtime.devices.device_buffers import device_lifetimes
from intarsia.runtime.devices.schedule import DeviceSchedule, schedule
from intarsia.runtime.executable import Executable
from intarsia.runtime.plan import Copy, ExecutionPlan, RunKernel
from intarsia.target import DeviceType, VirtualDevice

INPUTS = (np.arange(SIZE, dtype=np.float32), np.full(SIZE, -3, np.float32))


def on_one_device(plan: ExecutionPlan) -> list[Any]:
    """What the plan computes, step by step."""
    values: dict[int, Any] = dict(enumerate(INPUTS))
    for step in plan.blocks["main"].steps:
        if isinstance(step, Copy):
            values[step.destination] = values[step.source]
        elif isinstance(step, RunKernel):
            function = FUNCTIONS[KERNELS[step.kernel % len(KERNELS)]]
            values[step.outputs[0]] = function(*(values[slot] for slot in step.inputs))
    return [values[slot] for slot in plan.blocks["main"].results]


def as_program(plan: ExecutionPlan) -> IRModule:
    """The planned program that the plan is of, one operator for each kernel."""
    one = Constant(np.ones(SIZE, np.float32))
    kind = DeviceType.of_kind(plan.devices[0].partition(":")[0])
    places = [VirtualDevice(kind, number) for number in plan.blocks["main"].slot_devices]
    vector = TensorType((SIZE,), "float32")  # type: ignore[arg-type]  # the constructor takes the spelling
    params = tuple(Var(f"x{slot}", checked_type=vector, virtual_device=places[slot]) for slot in range(2))
    values: dict[int, Expr] = dict(enumerate(params))
    for step in steps_of(plan):
        args = [values[slot] for slot in step.inputs]
        if isinstance(step, Copy):
            made = Call(Op("device_copy", "intarsia"), tuple(args), checked_type=vector)
        else:
            name = KERNELS[step.kernel % len(KERNELS)]
            operands = {"double": [*args, *args], "increment": [*args, one]}.get(name, args)
            made = call("Identity" if name == "view" else "Add", *operands)
        (slot,) = step.outputs
        values[slot] = with_fields(made, virtual_device=places[slot])
    body = Tuple(tuple(values[slot] for slot in plan.blocks["main"].results))
    return IRModule({GlobalVar("main"): Function(params, body)})


@settings(max_examples=examples(40), deadline=None)
@given(device_plans())
def test_planned_programs_on_mock_devices_compute_what_one_device_computes(plan: ExecutionPlan) -> None:
    with build(as_program(plan)) as exe:
        assert is_right(exe.plan, len(exe.kernels), 9)
        found = exe.run_flat(*INPUTS)
    np.testing.assert_array_equal(found, on_one_device(plan))


def steps_of(plan: ExecutionPlan) -> list[RunKernel | Copy]:
    return [step for step in plan.blocks["main"].steps if isinstance(step, (RunKernel, Copy))]


def schedule_of(plan: ExecutionPlan) -> DeviceSchedule:
    return schedule(plan.blocks["main"], steps_of(plan), len(plan.devices))


def successors(made: DeviceSchedule) -> dict[tuple[int, int], set[tuple[int, int]]]:
    """Which turns surely come after each turn: by the order on a device, and by waiting."""
    after: dict[tuple[int, int], set[tuple[int, int]]] = {}
    places = [(device, number) for device, turns in enumerate(made.turns) for number in range(len(turns) + 1)]
    direct: dict[tuple[int, int], list[tuple[int, int]]] = {place: [] for place in places}
    for device, turns in enumerate(made.turns):
        for number, turn in enumerate(turns, 1):
            direct[device, number - 1].append((device, number))
            if turn.wait is not None:
                direct[turn.wait].append((device, number))
    for place in places:
        stack, seen = list(direct[place]), set()
        while stack:
            found = stack.pop()
            if found not in seen:
                seen.add(found)
                stack += direct[found]
        after[place] = seen
    return after


@settings(max_examples=examples(60), deadline=None)
@given(device_plans())
def test_plans_on_several_mock_devices_compute_what_one_computes(plan: ExecutionPlan) -> None:
    kernels = [fake(name) for _ in plan.devices for name in KERNELS]
    assert is_right(plan, len(kernels))
    with Executable(plan, kernels) as exe:
        for _ in range(2):
            np.testing.assert_array_equal(exe.run_flat(*INPUTS), on_one_device(plan))


@settings(max_examples=examples(60), deadline=None)
@given(device_plans("cpu"))
def test_plans_on_groups_of_cores_compute_what_one_computes(plan: ExecutionPlan) -> None:
    kernels = [fake(name) for _ in plan.devices for name in KERNELS]
    with Executable(plan, kernels) as exe:
        for _ in range(3):
            np.testing.assert_array_equal(exe.run_flat(*INPUTS), on_one_device(plan))


@settings(deadline=None)
@given(device_plans())
def test_no_two_values_that_may_be_in_use_at_once_share_bytes(plan: ExecutionPlan) -> None:
    """Where lifetimes are apart, whatever reads the one surely comes before what writes the other."""
    block, made = plan.blocks["main"], schedule_of(plan)
    form = ((SIZE,), np.dtype(np.float32))
    written = {slot for step in steps_of(plan) for slot in step.outputs}
    lifetimes = device_lifetimes(block, made, dict.fromkeys(written, form))
    after = successors(made)
    turn_of = {id(turn): (d, n) for d, turns in enumerate(made.turns) for n, turn in enumerate(turns, 1)}
    every = [turn for turns in made.turns for turn in turns]
    users = {
        slot: [turn_of[id(turn)] for turn in every if slot in (*turn.step.inputs, *turn.step.outputs)]
        for slot in written
    }
    for device, spans in enumerate(lifetimes):
        assert set(spans) == {slot for slot in written if block.slot_devices[slot] == device}
        for one, first in spans.items():
            for other, second in spans.items():
                if first.last < second.first:
                    assert one not in block.results
                    assert all((device, second.first) in after[user] for user in users[one]), (one, other)


@given(device_plans())
def test_what_is_known_is_what_surely_came_before(plan: ExecutionPlan) -> None:
    made = schedule_of(plan)
    after = successors(made)
    for device, turns in enumerate(made.turns):
        for number, turn in enumerate(turns, 1):
            for other, count in enumerate(turn.complete):
                before = [n for n in range(len(made.turns[other]) + 1) if (device, number) in after[other, n]]
                assert count == len(before)
        assert all(one.complete <= two.complete for one, two in pairwise(turns))


@given(device_plans())
def test_another_order_is_one_in_which_steps_can_be_done(plan: ExecutionPlan) -> None:
    block = plan.blocks["main"]
    ordered = overlapping(block)
    assert sorted(map(str, ordered.steps)) == sorted(map(str, block.steps))
    changed = ExecutionPlan(
        {"main": ordered}, plan.inputs, plan.outputs, plan.output_structure, plan.slot_types, plan.devices
    )
    assert is_right(changed, len(plan.devices) * len(KERNELS))
    assert overlapping(ordered).slots == block.slots
