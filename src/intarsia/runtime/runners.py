"""Choose the runner of a plan: straight-line or interpreted, with or without devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from intarsia.runtime.devices.device import Device
from intarsia.runtime.devices.interpreter import DeviceInterpreter
from intarsia.runtime.devices.runner import DeviceRunner
from intarsia.runtime.interpreter import Interpreter
from intarsia.runtime.kernel import Array
from intarsia.runtime.kernel_call import NamedKernel
from intarsia.runtime.plan import Copy, ExecutionPlan, RunKernel
from intarsia.runtime.straight_line import StraightLine
from intarsia.runtime.timeline import Recorder

Runner: TypeAlias = StraightLine | Interpreter | DeviceRunner


def new_runner(
    plan: ExecutionPlan,
    kernels: Sequence[NamedKernel],
    constants: Sequence[Array],
    devices: Sequence[Device] = (),
    recorder: Recorder | None = None,
) -> Runner:
    """Return the runner of a plan.

    Args:
        plan: The plan.
        kernels: Compiled functions, by the numbers that the plan uses.
        constants: Arrays that the plan's blocks read directly.
        devices: Devices of the plan, in its order.
        recorder: Recorder of the start and end of each step on these devices, if given.

    Raises:
        ExecutionError: The plan's buffers do not fit into memory.
    """
    is_straight = all(isinstance(step, (RunKernel, Copy)) for step in plan.blocks["main"].steps)
    if devices:
        of_devices = DeviceRunner if is_straight else DeviceInterpreter
        return of_devices(plan, kernels, constants, devices, recorder)
    return (StraightLine if is_straight else Interpreter)(plan, kernels, constants)


def runner_maker(
    kernels: Sequence[NamedKernel], constants: Sequence[Array], devices: Sequence[Device]
) -> Callable[[ExecutionPlan], Runner]:
    """Return the function that makes the runner of a plan with these parts, and that holds nothing else."""
    return lambda plan: new_runner(plan, kernels, constants, devices)
