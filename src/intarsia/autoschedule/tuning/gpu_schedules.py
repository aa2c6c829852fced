"""Schedules of a program's GPU kernels by their static cost, as a log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from intarsia.autoschedule.extraction.extract_gpu_tasks import extract_gpu_tasks
from intarsia.autoschedule.policy.gpu_policy import least_static_cost
from intarsia.autoschedule.policy.policy_options import PolicyOptions
from intarsia.autoschedule.task.facts_here import facts_here
from intarsia.ir import IRModule
from intarsia.native.schedule import ScheduleLog
from intarsia.runtime.cuda.gpu_facts import gpus_here
from intarsia.support.callbacks import never
from intarsia.target import Target
from intarsia.target.device_type import DeviceType
from intarsia.toolchain.native.toolchain import Native
from intarsia.tune.target_options import marked_functions

_QUICK: Final = PolicyOptions(
    sample_init_min_population=24, evolutionary_search_population=24, evolutionary_search_num_iters=3
)
"""Sizes of a search of some seconds for each kernel: a program takes 20 to 100 ms."""


def is_for_gpu(mod: IRModule, whole: Target | None) -> bool:
    """Return whether all native kernels of a program are for a GPU.

    Args:
        mod: The program.
        whole: Target of the whole program; None if its functions are assigned to toolchains.
    """
    if whole is not None:
        return whole.kind == DeviceType.CUDA.kind
    targets = [marked.target for marked in marked_functions(mod) if marked.target.toolchain == Native.name]
    return bool(targets) and all(target.kind == DeviceType.CUDA.kind for target in targets)


def gpu_schedule_log(
    mod: IRModule,
    whole: Target | None,
    *,
    seed: int = 0,
    options: PolicyOptions = _QUICK,
    should_stop: Callable[[], bool] = never,
) -> ScheduleLog:
    """Return the schedules of a program's kernels that have less static cost than what it has without them.

    The cost is no time: whether a program with these schedules is faster is measured as that of any program.

    Args:
        mod: Typed module.
        whole: Target of the whole program; None if its functions are assigned to toolchains.
        seed: Random seed of the search.
        options: Sizes of populations.
        should_stop: Function that returns true to end the search with the next kernel.

    Raises:
        CompileError: An operator has no native kernel, or a shape is unknown.
    """
    facts, states = facts_here(), []
    for task in extract_gpu_tasks(mod, whole, facts):
        if should_stop():
            break
        state = least_static_cost(task.task, facts, options, seed)
        if state.transform_steps != task.default_state.transform_steps:
            states.append(state)
    return ScheduleLog.of_states(states)


def has_gpu() -> bool:
    """Return whether schedules can be measured on a GPU of this machine."""
    return bool(gpus_here().facts)
