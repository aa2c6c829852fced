"""A schedule as TVM's users write it: calls on stages, each of which is a step of a `LoopState`.

s = Schedule(dag)
C = s.tensor("C")
i, j = C.op.axis
i_o, i_i = s[C].split(i, factor=8)
s[C].vectorize(j)
kernel = lower(dag, s.state)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from intarsia.native.dag import ComputeDAG, loop_name
from intarsia.native.loop_state.state import LoopState
from intarsia.native.te.tensor import ComputeOp, Tensor
from intarsia.support.errors import UsageError


@dataclass(frozen=True, slots=True)
class Axis:
    """A loop of a stage.

    Attributes:
        stage: Name of the stage.
        name: Name of the loop in the state.
    """

    stage: str
    name: str


@dataclass(frozen=True, slots=True)
class ScheduledOp:
    """The axes of an operation as they are in a schedule.

    Attributes:
        axis: Spatial axes, outermost first.
        reduce_axis: Axes that are summed over.
    """

    axis: tuple[Axis, ...]
    reduce_axis: tuple[Axis, ...]


@dataclass(frozen=True, slots=True)
class ScheduledTensor:
    """A tensor of a schedule.

    Attributes:
        schedule: The schedule.
        name: Name of the operation that computes it.
    """

    schedule: Schedule
    name: str

    @property
    def op(self) -> ScheduledOp:
        """The operation's axes.

        Raises:
            UsageError: It is an input, or written by loops of its own.
        """
        op = self.schedule.state[self.name].op
        if not isinstance(op, ComputeOp):
            raise UsageError(f"{self.name} has no axes: it is no te.compute")
        spatial, reduced = (
            tuple(Axis(self.name, loop_name(axis.name)) for axis in axes)
            for axes in (op.axes, op.reduce_axes)
        )
        return ScheduledOp(spatial, reduced)


class Schedule:
    """Loops under construction; `state` is what they are after the calls so far.

    Args:
        dag: Computation, without any decision; or a state to go on from.
    """

    def __init__(self, dag: ComputeDAG | LoopState) -> None:
        self.state = LoopState.initial(dag) if isinstance(dag, ComputeDAG) else dag

    def tensor(self, name: str) -> ScheduledTensor:
        """Return a tensor by the name of its operation.

        Raises:
            UsageError: There is no stage of that name.
        """
        self.state.stage_id(name)
        return ScheduledTensor(self, name)

    def names(self) -> dict[str, Any]:
        """Return the names that printed code of a state uses: exec(code, schedule.names())."""
        tensors = {loop_name(stage.op.name): self.tensor(stage.op.name) for stage in self.state.stages}
        return {"s": self, "te": SimpleNamespace(thread_axis=str), "tuple": tuple, **tensors}

    def __getitem__(self, tensor: ScheduledTensor | Tensor | str) -> ScheduledStage:
        """Return the stage of a tensor: of this schedule, of the computation, or by name."""
        return ScheduledStage(self, _stage_name(tensor))

    def cache_write(
        self, tensors: Sequence[ScheduledTensor | Tensor | str], scope: str
    ) -> tuple[ScheduledTensor, ...]:
        """Compute a tensor in a cache first; return the tensor in the cache."""
        name = _stage_name(tensors[0])
        position = self.state.stage_id(name)
        self.state = self.state.cache_write(name, scope)
        return (self.tensor(self.state.stages[position].op.name),)

    def cache_read(
        self,
        tensor: ScheduledTensor | Tensor | str,
        scope: str,
        readers: Sequence[ScheduledTensor | Tensor | str],
    ) -> ScheduledTensor:
        """Copy a tensor for some readers; return the copy."""
        name = _stage_name(tensor)
        position = self.state.stage_id(name)
        self.state = self.state.cache_read(name, scope, [_stage_name(reader) for reader in readers])
        return self.tensor(self.state.stages[position + 1].op.name)

    def rfactor(
        self, tensor: ScheduledTensor | Tensor | str, axis: Axis, factor_axis: int = 0
    ) -> ScheduledTensor:
        """Sum along one axis in a stage of its own; return the partial sums.

        Args:
            tensor: Tensor that is a sum.
            axis: Axis of the sum that becomes one of the partial sums.
            factor_axis: Position of it among their axes.
        """
        name = _stage_name(tensor)
        position = self.state.stage_id(name)
        self.state = self.state.rfactor(name, axis.name, factor_axis)
        return self.tensor(self.state.stages[position].op.name)


@dataclass(frozen=True, slots=True)
class ScheduledStage:
    """A stage of a schedule; every method is a step, and raises `IllegalStepError` if loops do not allow it.

    Attributes:
        schedule: The schedule.
        name: Name of the stage.
    """

    schedule: Schedule
    name: str

    def split(self, axis: Axis, factor: int | None = None, nparts: int | None = None) -> tuple[Axis, Axis]:
        """Split a loop into an outer and an inner one, by the inner (`factor`) or outer (`nparts`) extent."""
        length = nparts if factor is None else factor
        self._set(self._state.split(self.name, axis.name, [length], inner_to_outer=factor is not None))
        return Axis(self.name, f"{axis.name}.0"), Axis(self.name, f"{axis.name}.1")

    def fuse(self, *axes: Axis) -> Axis:
        """Fuse consecutive loops into one."""
        self._set(self._state.fuse(self.name, [axis.name for axis in axes]))
        return Axis(self.name, "".join(f"{axis.name}@" for axis in axes))

    def reorder(self, *axes: Axis) -> None:
        """Bring loops into an order, outermost first."""
        self._set(self._state.reorder(self.name, [axis.name for axis in axes]))

    def parallel(self, axis: Axis) -> None:
        """Run a loop on several threads."""
        self._set(self._state.parallel(self.name, axis.name))

    def vectorize(self, axis: Axis) -> None:
        """Run a loop in the lanes of vectors."""
        self._set(self._state.vectorize(self.name, axis.name))

    def unroll(self, axis: Axis) -> None:
        """Write the iterations of a loop one after another."""
        self._set(self._state.unroll(self.name, axis.name))

    def bind(self, axis: Axis, thread: str) -> None:
        """Bind a loop to blocks or threads of a GPU, such as "threadIdx.x"."""
        self._set(self._state.bind(self.name, axis.name, thread))

    def pragma(self, axis: Axis, name: str, value: object = None) -> None:
        """Set a pragma of a loop: auto_unroll_max_step; TVM's others have no effect here."""
        if name == "auto_unroll_max_step":
            self._set(self._state.pragma(self.name, axis.name, f"{name}${value}"))

    def storage_align(self, axis: Axis, factor: int, offset: int) -> None:
        """Align the rows of an axis in memory."""
        self._set(self._state.storage_align(self.name, axis.name, factor, offset))

    def compute_at(self, target: ScheduledStage, axis: Axis) -> None:
        """Compute the stage inside a loop of another one."""
        self._set(self._state.compute_at(self.name, target.name, axis.name))

    def compute_inline(self) -> None:
        """Compute the stage where it is read."""
        self._set(self._state.compute_inline(self.name))

    def compute_root(self) -> None:
        """Compute the stage in loops of its own."""
        self._set(self._state.compute_root(self.name))

    @property
    def _state(self) -> LoopState:
        return self.schedule.state

    def _set(self, state: LoopState) -> None:
        self.schedule.state = state


def _stage_name(tensor: ScheduledTensor | Tensor | str) -> str:
    match tensor:
        case str():
            return tensor
        case Tensor():
            return tensor.op.name
        case _:
            return tensor.name
