"""The search task: a computation on a machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from intarsia.autoschedule.task.hardware_params import HardwareParams
from intarsia.autoschedule.task.workload_registry import WORKLOADS, Argument, Tensors
from intarsia.native.dag import ComputeDAG
from intarsia.native.dag.keys import workload_key as key_of_dag
from intarsia.native.loop_state.layout_rewrite import LayoutRewriteOption
from intarsia.native.loop_state.record import RecordTask
from intarsia.support.errors import UsageError
from intarsia.target.target import Target


@dataclass(frozen=True, eq=False)
class SearchTask:
    """A computation to find a schedule for, on a machine (Ansor; seed ansor_minimum).

    Attributes:
        dag: Computation to schedule.
        target: Native target that compiles it.
        hardware: Hardware parameters of the machine.
        workload_key: Name of the computation in logs.
        layout_rewrite_option: Layout rewrite of placeholders with a free layout. A standalone task packs
            them inside the kernel, so that packing is part of its time.
        task_inputs: Contents, by name, of placeholders that times depend on.

    Raises:
        UsageError: A task input is no placeholder of the DAG, or has another shape or element type.
    """

    dag: ComputeDAG
    target: Target
    hardware: HardwareParams
    workload_key: str
    layout_rewrite_option: LayoutRewriteOption = LayoutRewriteOption.INSERT_TRANSFORM_STAGE
    task_inputs: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "task_inputs", MappingProxyType(dict(self.task_inputs)))
        placeholders = {tensor.buffer.name: tensor for tensor in self.dag.placeholders}
        for name, array in self.task_inputs.items():
            if name not in placeholders:
                known = ", ".join(placeholders) or "none"
                raise UsageError(f"task input {name} is no placeholder; there are {known}")
            tensor = placeholders[name]
            expected = tensor.shape, tensor.dtype.numpy
            if (array.shape, array.dtype) != expected:
                found = f"shape {array.shape} of {array.dtype}"
                raise UsageError(
                    f"task input {name} has {found}; expected shape {expected[0]} of {np.dtype(expected[1])}"
                )

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the task with a plain dictionary, to send it to worker processes."""
        fields = self.dag, self.target, self.hardware, self.workload_key, self.layout_rewrite_option
        return SearchTask, (*fields, dict(self.task_inputs))

    @classmethod
    def of_dag(cls, dag: ComputeDAG, target: Target, hardware: HardwareParams) -> SearchTask:
        """Create the task of a DAG, with TVM's workload key of its text."""
        return cls(dag, target, hardware, key_of_dag(dag))

    @classmethod
    def of_workload(
        cls,
        workload: str | Callable[..., Tensors],
        args: Sequence[Argument],
        target: Target,
        hardware: HardwareParams,
    ) -> SearchTask:
        """Create the task of a registered workload.

        Raises:
            UsageError: The workload is not registered.
        """
        key = WORKLOADS.make_workload_key(workload, args)
        return cls(ComputeDAG(WORKLOADS.workload_key_to_tensors(key)), target, hardware, key)

    @property
    def record_task(self) -> RecordTask:
        """Fields of the task in a record of a log."""
        return RecordTask(
            self.workload_key,
            str(self.target),
            self.hardware.numbers,
            "",
            int(self.layout_rewrite_option),
            tuple(sorted(self.task_inputs)),
        )
