"""Check that every value of a plan is on the device that uses it: only copies join two devices."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.runtime.devices.device_name import DeviceName
from intarsia.runtime.plan import Copy, ExecutionPlan, Invoke, PlanBlock, Repeat, RunKernel
from intarsia.runtime.step_lists import FlatBranch, FlatStep, flattened
from intarsia.support.errors import UsageError


def device_complaint(plan: ExecutionPlan) -> str:
    """Return the first defect in the devices of a plan with valid slots, or the empty string."""
    if complaint := _names_complaint(plan.devices):
        return complaint
    owners: dict[int, int] = {}
    for name, block in plan.blocks.items():
        if complaint := _block_complaint(plan, block, owners):
            return f'block "{name}": {complaint}'
    return ""


def _names_complaint(names: Sequence[str]) -> str:
    for name in names:
        try:
            DeviceName.parse(name)
        except UsageError as error:
            return error.problem
    return "it lists a device twice" if len(set(names)) < len(names) else ""


def _block_complaint(plan: ExecutionPlan, block: PlanBlock, owners: dict[int, int]) -> str:
    """Return the first defect in a block; adds the device of each kernel to `owners`."""
    expected = block.slots if plan.devices else 0
    if len(block.slot_devices) != expected:
        return f"it has the devices of {len(block.slot_devices)} slots, expected {expected}"
    valid_numbers = range(max(1, len(plan.devices)))
    for step in (step for steps in flattened(block.steps) for step in steps):
        numbers = [step.device] if isinstance(step, (RunKernel, Copy)) else []
        if any(number not in valid_numbers for number in (*numbers, *block.slot_devices)):
            return f"it names a device that is not there; there are {len(plan.devices)}"
        if isinstance(step, RunKernel) and owners.setdefault(step.kernel, step.device) != step.device:
            return f"kernel {step.kernel} is run on two devices"
        if complaint := _step_complaint(plan, block, step):
            return complaint
    return ""


def _step_complaint(plan: ExecutionPlan, block: PlanBlock, step: FlatStep) -> str:
    devices = block.slot_devices
    match step:
        case Copy():
            if not devices:
                return "it has a copy, but the plan has no devices"
            if devices[step.destination] != step.device:
                return f"slot {step.destination} is not on the device that it is copied to"
            same = devices[step.source] == step.device
            return f"slot {step.source} is copied to the device it is on" if same else ""
        case RunKernel():
            slots = [*step.inputs, *step.outputs] if devices else []
            apart = [slot for slot in slots if devices[slot] != step.device]
            return f"kernel {step.kernel} uses slot {apart[0]} of another device" if apart else ""
        case Invoke():
            called = plan.blocks[step.block]
            outer, inner = (*step.inputs, *step.outputs), (*called.params, *called.results)
            same = not devices or not called.slot_devices
            same = same or [devices[slot] for slot in outer] == [called.slot_devices[slot] for slot in inner]
            return "" if same else f'it passes values to block "{step.block}" on other devices'
        case Repeat():
            return f'it repeats block "{step.block}", but the plan has devices' if devices else ""
        case FlatBranch():
            lists = (step.true_results, step.false_results) if devices else ()
            wanted = [devices[slot] for slot in step.outputs] if devices else []
            same = all([devices[slot] for slot in results] == wanted for results in lists)
            return "" if same else "the results of a branch are on other devices than its outputs"
