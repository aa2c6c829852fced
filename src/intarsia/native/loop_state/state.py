"""The loops of a DAG, and the steps that led to them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, TypeAlias

from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state.actions import Actions
from intarsia.native.loop_state.attach_map import AttachMap
from intarsia.native.loop_state.illegal_step import IllegalStepError
from intarsia.native.loop_state.iterator import Iterator, IteratorAnnotation, Range
from intarsia.native.loop_state.print_state import state_text
from intarsia.native.loop_state.stage import Stage
from intarsia.native.loop_state.step_json import step_to_json
from intarsia.native.loop_state.steps import TransformStep
from intarsia.native.te.tensor import Operation, Tensor
from intarsia.support.errors import UsageError

StageRef: TypeAlias = int | str | Operation | Tensor
"""A stage: its number, the name of its operation, or an operation or tensor of that name.

Names outlive stages put in before them: the result C is made by the stage named C after `cache_write` too.
"""

IterRef: TypeAlias = int | str | Iterator
"""A loop of a stage: its number, its name, or a loop of that name."""


@dataclass(frozen=True, eq=False)
class LoopState(Actions):
    """A preview of the loops, and the history that makes them; immutable (seed ansor_minimum).

    Two states are equal if they print the same, whatever their histories.

    Attributes:
        initial_dag: What is computed, before any step.
        stages: One for each operation of `current_dag`, in its order.
        transform_steps: The history; applied to `LoopState.initial(initial_dag)` it gives this state.
        attach_map: Which stages stand inside which loops.
        current_dag: What is computed now; cache_read, cache_write and rfactor add operations.
        concrete: Whether every split length is chosen.
    """

    initial_dag: ComputeDAG
    stages: tuple[Stage, ...]
    transform_steps: tuple[TransformStep, ...]
    attach_map: AttachMap
    current_dag: ComputeDAG
    concrete: bool = True

    @classmethod
    def initial(cls, dag: ComputeDAG) -> LoopState:
        """Return the loops as declared: each operation on its own, spatial axes around reduction axes."""
        return cls(dag, tuple(map(Stage.of, dag.ops)), (), AttachMap(), dag)

    @classmethod
    def replay(cls, dag: ComputeDAG, steps: Iterable[TransformStep]) -> LoopState:
        """The state that a history leads to.

        Raises:
            IllegalStepError: A step is not possible.
        """
        state = cls.initial(dag)
        for step in steps:
            state = state.apply(step)
        return state

    def apply(self, step: TransformStep) -> LoopState:
        """The state after one more step.

        Raises:
            IllegalStepError: The step is not possible; it says which and why.
        """
        if not 0 <= step.stage_id < len(self.stages):
            found = f"there are stages 0 to {len(self.stages) - 1}"
            raise self.refusal(step, f"found stage {step.stage_id}; {found}")
        made = step.changed(self)
        steps = (*self.transform_steps, step)
        return LoopState(
            *(made.initial_dag, made.stages, steps, made.attach_map, made.current_dag, made.concrete)
        )

    def unroll(self, stage: StageRef, loop: IterRef, max_unroll: int | None = None) -> LoopState:
        """A loop unrolled; the same state if its extent is above `max_unroll`."""
        found = self[stage].iters[self.iter_id(stage, loop)].extent
        if max_unroll is not None and found is not None and found > max_unroll:
            return self
        return self.annotate(stage, loop, IteratorAnnotation.UNROLL)

    def __getitem__(self, stage: StageRef) -> Stage:
        return self.stages[self.stage_id(stage)]

    def stage_id(self, stage: StageRef) -> int:
        """The number of a stage.

        Raises:
            UsageError: There is no such stage.
        """
        if isinstance(stage, int):
            if 0 <= stage < len(self.stages):
                return stage
            raise UsageError(f"there is no stage {stage}: there are stages 0 to {len(self.stages) - 1}")
        name = stage if isinstance(stage, str) else (stage.op if isinstance(stage, Tensor) else stage).name
        found = self._places.get(name)
        if found is None:
            raise UsageError(f"there is no stage {name}; there are {', '.join(self._places)}")
        return found

    def iter_id(self, stage: StageRef, loop: IterRef) -> int:
        """The number of a loop in its stage.

        Raises:
            UsageError: There is no such stage or loop.
        """
        found = self[stage]
        if isinstance(loop, int):
            return loop
        name = loop.name if isinstance(loop, Iterator) else loop
        names = [each.name for each in found.iters]
        if name not in names:
            raise UsageError(f"stage {found.op.name} has no loop {name}; it has {', '.join(names) or 'none'}")
        return names.index(name)

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {stage.op.name: place for place, stage in enumerate(self.stages)}

    def with_stage(self, stage_id: int, **changes: Any) -> LoopState:
        """With fields of a stage changed; no step is recorded."""
        stages = list(self.stages)
        stages[stage_id] = stages[stage_id].with_fields(**changes)
        return self._over(stages)

    def _over(self, stages: Sequence[Stage]) -> LoopState:
        """With other stages; written out, because searches make millions of states."""
        return LoopState(
            *(self.initial_dag, tuple(stages), self.transform_steps, self.attach_map),
            *(self.current_dag, self.concrete),
        )

    def with_fields(self, **changes: Any) -> LoopState:
        """With fields changed, the same state if they are not; no step is recorded."""
        is_same = all(getattr(self, name) is value for name, value in changes.items())
        return self if is_same else replace(self, **changes)

    def with_ranges(self, ranges: Mapping[int, Sequence[Range | None]]) -> LoopState:
        """With what bound inference found: the ranges of the loops of some stages; this state if it has them.

        Raises:
            UsageError: A stage has another number of loops.
        """
        stages = list(self.stages)
        is_changed = False
        for stage_id, found in ranges.items():
            loops = stages[stage_id].iters
            if len(loops) != len(found):
                name = stages[stage_id].op.name
                raise UsageError(f"stage {name}: found {len(found)} ranges; expected {len(loops)}")
            if any(loop.range != each for loop, each in zip(loops, found, strict=True)):
                ranged = tuple(loop.with_range(each) for loop, each in zip(loops, found, strict=True))
                stages[stage_id] = stages[stage_id].with_fields(iters=ranged)
                is_changed = True
        return self._over(stages) if is_changed else self

    def refusal(self, step: TransformStep, problem: str) -> IllegalStepError:
        """The error that a step is not possible here."""
        place = len(self.transform_steps)
        inside = 0 <= step.stage_id < len(self.stages)
        name = self.stages[step.stage_id].op.name if inside else str(step.stage_id)
        text = json.dumps(step_to_json(step))
        return IllegalStepError(f"step {place}, {text} on stage {name}: {problem}", place, name)

    @cached_property
    def notes(self) -> dict[object, Any]:
        """What others have found out about this state, by keys of theirs; neither copied nor pickled."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """The fields, without what follows from them."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @cached_property
    def text(self) -> str:
        """What `str` gives, and equality compares."""
        return state_text(self)

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, LoopState) and self.text == other.text)

    def __hash__(self) -> int:
        return hash(self.text)
