"""A schedule that the printed Python code of a history can run on; every call is a step of a state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from intarsia.native.dag import ComputeDAG, loop_name
from intarsia.native.loop_state import LoopState
from intarsia.native.te.tensor import ComputeOp


def run_python_code(dag: ComputeDAG, code: str) -> LoopState:
    """The state of a DAG after the calls of printed code."""
    schedule = Schedule(LoopState.initial(dag))
    te = SimpleNamespace(thread_axis=lambda name: name)
    names: dict[str, Any] = {"s": schedule, "te": te, "tuple": tuple}
    names |= {loop_name(op.name): TensorHandle(schedule, op.name) for op in dag.ops}
    exec(compile(code, "schedule", "exec"), names)
    return schedule.state


def shape_of(state: LoopState) -> object:
    """What two states share that make the same loops, whatever they call them."""
    stages = [
        (
            stage.op.name,
            stage.compute_at,
            [(loop.extent, loop.kind, loop.annotation) for loop in stage.iters],
            (stage.auto_unroll_max_step, stage.storage_offset),
        )
        for stage in state.stages
    ]
    return stages, state.attach_map


@dataclass(frozen=True)
class Axis:
    """A loop, by the name it has in the state."""

    stage: str
    name: str


@dataclass(frozen=True)
class TensorHandle:
    """A tensor of a schedule, by the name of its operation."""

    schedule: Schedule
    name: str

    @property
    def op(self) -> SimpleNamespace:
        """The axes as they are now."""
        op = self.schedule.state[self.name].op
        assert isinstance(op, ComputeOp)
        axis, reduce_axis = (
            [Axis(self.name, loop_name(each.name)) for each in axes] for axes in (op.axes, op.reduce_axes)
        )
        return SimpleNamespace(axis=axis, reduce_axis=reduce_axis)


@dataclass
class Schedule:
    """What code calls `s`."""

    state: LoopState

    def __getitem__(self, tensor: TensorHandle) -> StageHandle:
        return StageHandle(self, tensor.name)

    def cache_write(self, tensors: Sequence[TensorHandle], scope: str) -> tuple[TensorHandle, ...]:
        place = self.state.stage_id(tensors[0].name)
        self.state = self.state.cache_write(tensors[0].name, scope)
        return (TensorHandle(self, self.state.stages[place].op.name),)

    def cache_read(self, tensor: TensorHandle, scope: str, readers: Sequence[TensorHandle]) -> TensorHandle:
        place = self.state.stage_id(tensor.name)
        self.state = self.state.cache_read(tensor.name, scope, [reader.name for reader in readers])
        return TensorHandle(self, self.state.stages[place + 1].op.name)

    def rfactor(self, tensor: TensorHandle, axis: Axis, place: int) -> TensorHandle:
        stage = self.state.stage_id(tensor.name)
        self.state = self.state.rfactor(tensor.name, axis.name, place)
        return TensorHandle(self, self.state.stages[stage].op.name)


@dataclass(frozen=True)
class StageHandle:
    """What code calls `s[C]`."""

    schedule: Schedule
    name: str

    def split(self, axis: Axis, factor: int | None = None, nparts: int | None = None) -> tuple[Axis, Axis]:
        length = factor if factor is not None else nparts
        self._set(self._state.split(self.name, axis.name, [length], inner_to_outer=factor is not None))
        return Axis(self.name, f"{axis.name}.0"), Axis(self.name, f"{axis.name}.1")

    def fuse(self, *axes: Axis) -> Axis:
        self._set(self._state.fuse(self.name, [axis.name for axis in axes]))
        return Axis(self.name, "".join(f"{axis.name}@" for axis in axes))

    def reorder(self, *axes: Axis) -> None:
        self._set(self._state.reorder(self.name, [axis.name for axis in axes]))

    def parallel(self, axis: Axis) -> None:
        self._set(self._state.parallel(self.name, axis.name))

    def vectorize(self, axis: Axis) -> None:
        self._set(self._state.vectorize(self.name, axis.name))

    def unroll(self, axis: Axis) -> None:
        self._set(self._state.unroll(self.name, axis.name))

    def bind(self, axis: Axis, thread: str) -> None:
        self._set(self._state.bind(self.name, axis.name, thread))

    def pragma(self, axis: Axis, name: str, value: object = None) -> None:
        if name == "auto_unroll_max_step":
            self._set(self._state.pragma(self.name, axis.name, f"{name}${value}"))

    def storage_align(self, axis: Axis, factor: int, offset: int) -> None:
        self._set(self._state.storage_align(self.name, axis.name, factor, offset))

    def compute_at(self, target: StageHandle, axis: Axis) -> None:
        self._set(self._state.compute_at(self.name, target.name, axis.name))

    def compute_inline(self) -> None:
        self._set(self._state.compute_inline(self.name))

    def compute_root(self) -> None:
        self._set(self._state.compute_root(self.name))

    @property
    def _state(self) -> LoopState:
        return self.schedule.state

    def _set(self, state: LoopState) -> None:
        self.schedule.state = state
