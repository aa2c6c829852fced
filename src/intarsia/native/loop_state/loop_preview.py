"""The loops of a DAG as they will be, as the steps of a history read and change them."""

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

Names outlive stages put in before them: the result C is made by the stage named C after `cache_write` too.
"""

IterRef: TypeAlias = int | str | Iterator
"""A loop of a stage: its number, its name, or a loop of that name."""


@dataclass(frozen=True, eq=False)
class LoopPreview:
    """The loops of every stage of a DAG; immutable. `LoopState` adds the steps that may follow.

    Two are equal if they print the same, whatever their histories.

    Attributes:
        initial_dag: What is computed, before any step.
        stages: One for each operation of `current_dag`, in its order.
        transform_steps: The history that led here.
        attach_map: Which stages stand inside which loops.
        current_dag: What is computed now; cache_read, cache_write and rfactor add operations.
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

    def with_stage(self, stage_id: int, **changes: Any) -> Self:
        """With fields of a stage changed; no step is recorded."""
        stages = list(self.stages)
        stages[stage_id] = stages[stage_id].with_fields(**changes)
        return self._over(stages)

    def _over(self, stages: Sequence[Stage]) -> Self:
        """With other stages; written out, because searches make millions of states."""
        return type(self)(
            *(self.initial_dag, tuple(stages), self.transform_steps, self.attach_map),
            *(self.current_dag, self.concrete),
        )

    def with_fields(self, **changes: Any) -> Self:
        """With fields changed, the same state if they are not; no step is recorded."""
        is_same = all(getattr(self, name) is value for name, value in changes.items())
        return self if is_same else replace(self, **changes)

    def with_ranges(self, ranges: Mapping[int, Sequence[Range | None]]) -> Self:
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

    def refusal(self, step: StepRecord, problem: str) -> IllegalStepError:
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
        return state_text(self.stages, self.attach_map)

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, LoopPreview) and self.text == other.text)

    def __hash__(self) -> int:
        return hash(self.text)
