"""The computation of one kernel as a workload, and a schedule of it as a candidate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy.typing as npt

from intarsia.measure.candidate_task import Outcome
from intarsia.measure.measure_input import Candidate, PlainData
from intarsia.measure.schedules.build_schedule import build_schedule
from intarsia.measure.schedules.kernel_contents import kernel_contents
from intarsia.measure.schedules.kernel_folder import KernelFolder, KernelProgram
from intarsia.native.dag import ComputeDAG, structural_key
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.step_record import step_to_json
from intarsia.native.machine.isa import Isa
from intarsia.support.digest import digest_bytes, digest_text
from intarsia.target import Target
from intarsia.target.device_type import DeviceType
from intarsia.transform import PassSettings

KIND: Final = "schedule"
"""The kind of candidate that a schedule is."""

_GPU_TARGET: Final = Target("cuda -toolchain=native")

BuildSchedule: TypeAlias = Callable[[Path, PlainData, Path, int | None], Outcome]
"""Function as `build_schedule`; workers import it by its name."""


@dataclass(frozen=True, eq=False)
class KernelWorkload:
    """The computation of one kernel; schedules are implementations of it.

    Attributes:
        dag: The computation.
        isa: Instruction set of the code.
        given: Contents, by name, of placeholders that times depend on; the others are random.
        settings: Settings of the passes on loops, under which schedules are built, in whatever process;
            default: those of the context in which the workload is made.
        build: Function of a module that builds a schedule.
        is_for_gpu: Whether schedules are for the GPU of this machine; `isa` is then that of its host.
    """

    dag: ComputeDAG
    isa: Isa
    given: Mapping[str, npt.NDArray[Any]] = field(default_factory=lambda: MappingProxyType({}))
    settings: PassSettings = field(default_factory=PassSettings.current)
    build: BuildSchedule = build_schedule
    is_for_gpu: bool = False

    @property
    def name(self) -> str:
        """Name for people."""
        return f"schedule of {self.dag.outputs[0].buffer.name}"

    @cached_property
    def digest(self) -> str:
        """Digest of the computation; what times depend on besides changes it: contents, settings, a GPU."""
        digest = kernel_digest(self.dag)
        device = (DeviceType.CUDA.kind,) if self.is_for_gpu else ()
        parts = [*self._given_parts, *self.settings.digest_parts, *device]
        return digest_text((digest, *parts)) if parts else digest

    @property
    def _given_parts(self) -> list[str]:
        """Digests of the given contents, by position; names do not count."""
        given = (
            (position, self.given.get(tensor.buffer.name))
            for position, tensor in enumerate(self.dag.placeholders)
        )
        return [
            f"{position} {digest_bytes(array.tobytes()).hex()}"
            for position, array in given
            if array is not None
        ]

    def write(self, parent: Path, seed: int = 0) -> KernelFolder:
        """Write the computation below a folder, without a reference result.

        Args:
            parent: Folder that holds a folder for each computation.
            seed: Seed of random contents.

        Raises:
            OutputError: The folder cannot be written.
        """
        program = KernelProgram(self.dag, self.isa, self.settings, self.is_for_gpu)
        contents = kernel_contents(self.dag, self.given, seed)
        return KernelFolder.write(parent / f"{self.digest}-{seed}", program, contents)


@dataclass(frozen=True, slots=True, eq=False)
class ScheduleInput:
    """A schedule of a kernel on a number of threads.

    Attributes:
        workload: The computation.
        threads: Number of threads that run it.
        candidate: The schedule (`schedule_candidate`).
        effort: Expected effort of its build, in any unit; large ones are begun first.
    """

    workload: KernelWorkload
    threads: int
    candidate: Candidate
    effort: int = 0

    @classmethod
    def of(cls, workload: KernelWorkload, threads: int, state: LoopState, layout: int) -> ScheduleInput:
        """Return a schedule as an input.

        Args:
            workload: The computation.
            threads: Number of threads that run it.
            state: State with every split length chosen.
            layout: Number of the layout rewrite option.
        """
        unrolled = max((stage.auto_unroll_max_step for stage in state.stages), default=0)
        return cls(workload, threads, schedule_candidate(state, layout), unrolled)

    @property
    def target(self) -> Target:
        """The target under which it is stored."""
        return schedule_target(self.threads, is_for_gpu=self.workload.is_for_gpu)


def kernel_digest(dag: ComputeDAG) -> str:
    """Return the digest of a DAG's computation; names do not count."""
    return digest_text(("te", structural_key(dag)))


def schedule_target(threads: int, *, is_for_gpu: bool = False) -> Target:
    """Return the target under which schedules are measured and stored.

    Args:
        threads: Number of threads that run them on a CPU.
        is_for_gpu: Whether they are for the GPU.
    """
    if is_for_gpu:
        return _GPU_TARGET
    return Target(f"cpu -toolchain=native -threads={threads}")


def schedule_candidate(state: LoopState, layout: int) -> Candidate:
    """Return a schedule as plain data.

    Args:
        state: State with every split length chosen.
        layout: Number of the layout rewrite option.
    """
    steps: PlainData = [step_to_json(step) for step in state.transform_steps]
    return Candidate(KIND, {"steps": steps, "layout": layout})
