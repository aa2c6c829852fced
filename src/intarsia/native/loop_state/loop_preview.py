"""The loops of a DAG, as the steps of a history read and change them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self, TypeAlias

from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state.attach_map import AttachMap
from intarsia.native.loop_state.illegal_step import IllegalStepError
from intarsia.native.loop_state.iterator import Iterator, Range
from intarsia.native.loop_state.print_state import state_text
from intarsia.native.loop_state.stage import Stage
from intarsia.native.loop_state.step_record import StepRecord, step_to_json
from intarsia.native.te.tensor import Operation, Tensor
from intarsia.support.errors import UsageError

StageRef: TypeAlias = int | str | Operation | Tensor
"""A stage: its number, the name of its operation, or an operation or tensor of that name.

Names stay valid when stages are inserted: after `cache_write` the stage named C still computes the result C.
"""

IterRef: TypeAlias = int | str | Iterator
"""A loop of a stage: its number, its name, or a loop of that name."""


@dataclass(frozen=True, eq=False)
class LoopPreview:
    """The loops of every stage of a DAG; immutable. `LoopState` adds methods that apply steps.

    Previews with the same text are equal, even if their histories differ.

    Attributes:
        initial_dag: DAG before any step.
        stages: Stages, one for each operation of `current_dag`, in its order.
        transform_steps: Steps of the history.
        attach_map: Map of the stages inside loops of others.
        current_dag: DAG after the steps; cache_read, cache_write and rfactor add operations.
        concrete: Whether every split length is chosen.
    """

    initial_dag: ComputeDAG
    stages: tuple[Stage, ...]
    transform_steps: tuple[StepRecord, ...]
    attach_map: AttachMap
    current_dag: ComputeDAG
    concrete: bool = True

    def __getitem__(self, stage: StageRef) -> Stage:
        return self.stages[self.stage_id(stage)]

    def stage_id(self, stage: StageRef) -> int:
        """Return the number of a stage.

        Raises:
            UsageError: There is no such stage.
        """
        if isinstance(stage, int):
            if 0 <= stage < len(self.stages):
                return stage
            raise UsageError(f"there is no stage {stage}: there are stages 0 to {len(self.stages) - 1}")
        name = stage if isinstance(stage, str) else (stage.op if isinstance(stage, Tensor) else stage).name
        stage_id = self._stage_ids.get(name)
        if stage_id is None:
            raise UsageError(f"there is no stage {name}; there are {', '.join(self._stage_ids)}")
        return stage_id

    def iter_id(self, stage: StageRef, loop: IterRef) -> int:
        """Return the number of a loop in its stage.

        Raises:
            UsageError: There is no such stage or loop.
        """
        owner = self[stage]
        if isinstance(loop, int):
            return loop
        name = loop.name if isinstance(loop, Iterator) else loop
        names = [owned.name for owned in owner.iters]
        if name not in names:
            raise UsageError(f"stage {owner.op.name} has no loop {name}; it has {', '.join(names) or 'none'}")
        return names.index(name)

    @cached_property
    def _stage_ids(self) -> Mapping[str, int]:
        return {stage.op.name: stage_id for stage_id, stage in enumerate(self.stages)}

    def with_stage(self, stage_id: int, **changes: Any) -> Self:
        """Return the preview with changed fields of a stage; no step is recorded."""
        stages = list(self.stages)
        stages[stage_id] = stages[stage_id].with_fields(**changes)
        return self._with_stages(stages)

    def _with_stages(self, stages: Sequence[Stage]) -> Self:
        """Return the preview with other stages; written out, because searches build millions of states."""
        return type(self)(
            *(self.initial_dag, tuple(stages), self.transform_steps, self.attach_map),
            *(self.current_dag, self.concrete),
        )

    def with_fields(self, **changes: Any) -> Self:
        """Return the preview with changed fields, itself if none changes; no step is recorded."""
        is_same = all(getattr(self, name) is value for name, value in changes.items())
        return self if is_same else replace(self, **changes)

    def with_ranges(self, ranges: Mapping[int, Sequence[Range | None]]) -> Self:
        """Return the preview with the loop ranges that bound inference found, itself if it has them.

        Raises:
            UsageError: A stage has another number of loops.
        """
        stages = list(self.stages)
        is_changed = False
        for stage_id, stage_ranges in ranges.items():
            loops = stages[stage_id].iters
            if len(loops) != len(stage_ranges):
                name = stages[stage_id].op.name
                raise UsageError(f"stage {name}: found {len(stage_ranges)} ranges; expected {len(loops)}")
            if any(loop.range != loop_range for loop, loop_range in zip(loops, stage_ranges, strict=True)):
                ranged = tuple(
                    loop.with_range(loop_range) for loop, loop_range in zip(loops, stage_ranges, strict=True)
                )
                stages[stage_id] = stages[stage_id].with_fields(iters=ranged)
                is_changed = True
        return self._with_stages(stages) if is_changed else self

    def step_error(self, step: StepRecord, problem: str) -> IllegalStepError:
        """Return the error that a step is not possible here."""
        step_id = len(self.transform_steps)
        exists = 0 <= step.stage_id < len(self.stages)
        name = self.stages[step.stage_id].op.name if exists else str(step.stage_id)
        text = json.dumps(step_to_json(step))
        return IllegalStepError(f"step {step_id}, {text} on stage {name}: {problem}", step_id, name)

    @cached_property
    def notes(self) -> dict[object, Any]:
        """Facts that analyses cache on this state, by keys that they choose; neither copied nor pickled."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields, without cached values."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def text(self) -> str:
        """Text of the state, which equality compares."""
        return state_text(self.stages, self.attach_map)

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, LoopPreview) and self.text == other.text)

    def __hash__(self) -> int:
        return hash(self.text)
