"""Search tasks: a computation on hardware, workload names, and limits of the space."""

from intarsia.autoschedule.task.hardware_params import HardwareParams
from intarsia.autoschedule.task.search_task import SearchTask
from intarsia.autoschedule.task.space_options import SpaceOptions
from intarsia.autoschedule.task.workload_registry import (
    WORKLOADS,
    WorkloadRegistry,
    make_workload_key,
    register_workload,
    register_workload_tensors,
    workload_key_to_tensors,
)

__all__ = [
    "WORKLOADS",
    "HardwareParams",
    "SearchTask",
    "SpaceOptions",
    "WorkloadRegistry",
    "make_workload_key",
    "register_workload",
    "register_workload_tensors",
    "workload_key_to_tensors",
]
