"""Bound inference: where every stage of a state is computed, and over which tile (seed ansor_minimum)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from intarsia.ir.loop_walk import Event, operands, scalars, walk
from intarsia.ir.prim_func import Load, LoopVar, Scalar
from intarsia.native.loop_state.iterator import IteratorAnnotation
from intarsia.native.loop_state.stage import ComputeAt, StageKind
from intarsia.native.loop_state.state import LoopState
from intarsia.native.lowering.element_forms import ElementForms
from intarsia.native.lowering.inlining import Inlining
from intarsia.native.lowering.placement import OUTSIDE, Path, StagePlacement, Surroundings, place_stage
from intarsia.native.lowering.read_box import Interval, Read, read_box
from intarsia.native.lowering.scalar_form import rewrite
from intarsia.native.te import ComputeOp, ExternOp
from intarsia.support.errors import UsageError
from intarsia.support.post_order import post_order_of

_OVER_THREADS: Final = (IteratorAnnotation.THREAD_X, IteratorAnnotation.VTHREAD)


@dataclass(frozen=True, slots=True)
class Placements:
    """Placements of the stages of a state, by their numbers, without inlined stages and placeholders.

    Attributes:
        by_stage: StagePlacement of each stage.
        elements: Scalars of the elements of compute operations, at their placement.
        inlining: Replacements of loads of inlined stages.
    """

    by_stage: Mapping[int, StagePlacement]
    elements: Mapping[int, ElementForms]
    inlining: Inlining


def find_placements(state: LoopState) -> Placements:
    """Place every stage, readers first, over the tile that is read where it is computed; cached in the state.

    Raises:
        UsageError: A length is not chosen, or a stage is computed where those that read it cannot see it.
    """
    placements = state.notes.get(Placements)
    if not isinstance(placements, Placements):
        placements = state.notes[Placements] = _Search(state).place_all()
    return placements


def note_placements(state: LoopState, placements: Placements) -> None:
    """Cache placements in a state that differs in the ranges of its loops only; they do not matter."""
    state.notes[Placements] = placements


class _Search:
    def __init__(self, state: LoopState) -> None:
        self._state = state
        self._inlining = Inlining(state.stages)
        self._placements: dict[int, StagePlacement] = {}
        self._elements: dict[int, ElementForms] = {}
        self._reads: dict[str, list[tuple[Path, str, Read]]] = {}

    def place_all(self) -> Placements:
        # Readers come after what they read: in reverse order, a stage's reads are known before its tile.
        for stage_id in reversed(range(len(self._state.stages))):
            stage = self._state.stages[stage_id]
            if stage.kind is StageKind.PLACEHOLDER:
                continue
            if stage.compute_at is ComputeAt.INLINED:
                self._check_not_output(stage_id, "inlined")
                continue
            around = self._around(stage_id)
            tile = self._tile(stage_id, around)
            placement = place_stage(stage, around, tile)
            self._placements[stage_id] = placement
            self._note_reads(stage_id, placement)
        return Placements(self._placements, self._elements, self._inlining)

    def _around(self, stage_id: int) -> Surroundings:
        target = self._state.attach_map.positions.get(stage_id)
        if target is None:
            return OUTSIDE
        target_placement = self._placements.get(target[0])
        if target_placement is None or not target_placement.loops:
            name = self._state.stages[stage_id].op.name
            raise UsageError(
                f"{name} is computed inside a loop of {self._state.stages[target[0]].op.name}; "
                "expected a later stage that has loops"
            )
        around = target_placement.surroundings_inside(*target)
        return self._around_all_threads(around) if _is_shared(self._state, stage_id) else around

    def _threads(self, around: Surroundings) -> frozenset[LoopVar]:
        """Return the counters of the loops over threads, also virtual ones, among those around a stage."""
        loops = (self._placements[stage_id].loops[position] for stage_id, position in around.path)
        return frozenset(loop.var for loop in loops if loop.annotation in _OVER_THREADS)

    def _around_all_threads(self, around: Surroundings) -> Surroundings:
        """Return the surroundings of a stage that all threads compute, without guards of one thread."""
        threads = self._threads(around)
        guards = tuple(guard for guard in around.guards if not guard.loop_vars & threads)
        return Surroundings(around.path, around.ranges, guards)

    def _tile(self, stage_id: int, around: Surroundings) -> tuple[Interval, ...] | None:
        op = self._state.stages[stage_id].op
        if around is OUTSIDE:
            return None
        self._check_not_output(stage_id, "computed inside another stage")
        if not isinstance(op, ComputeOp):
            raise UsageError(f"{op.name} is computed inside a loop; expected an operation with loops")
        reads = []
        for buffer in op.buffers:
            for path, reader, read in self._reads.get(buffer.name, ()):
                if path[: len(around.path)] != around.path:
                    raise UsageError(
                        f"{reader} reads {op.name}, which is computed inside a loop that is not around it"
                    )
                reads.append(read)
        fixed = around.ranges
        if _is_shared(self._state, stage_id):
            threads = self._threads(around)
            fixed = {var: values for var, values in fixed.items() if var not in threads}
        return read_box(reads, fixed, op.shape)

    def _check_not_output(self, stage_id: int, where: str) -> None:
        op = self._state.stages[stage_id].op
        if self._state.current_dag.is_output(op):
            raise UsageError(f"{op.name} is {where}; expected that of a result as a whole")

    def _note_reads(self, stage_id: int, placement: StagePlacement) -> None:
        op = placement.stage.op
        path = (*placement.around.path, *((stage_id, i) for i in range(len(placement.loops))))
        if isinstance(op, ExternOp):
            for name, load in _loads(op, self._inlining):
                self._reads.setdefault(name, []).append((path, op.name, load))
            return
        assert isinstance(op, ComputeOp), "placeholders are not computed"
        forms = ElementForms(self._inlining.bodies(op), placement.axes, placement.ranges)
        self._elements[stage_id] = forms
        for buffer, indices in forms.reads():
            self._reads.setdefault(buffer.name, []).append((path, op.name, Read(indices, placement.ranges)))


def _is_shared(state: LoopState, stage_id: int) -> bool:
    """Return whether the threads of a block compute a stage together."""
    return any(loop.annotation is IteratorAnnotation.THREAD_X for loop in state.stages[stage_id].iters)


def _loads(op: ExternOp, inlining: Inlining) -> list[tuple[str, Read]]:
    """Return reads of whole tensors: the indices of a statement are not analysed."""
    reads: dict[str, Read] = {}

    def rule(scalar: Scalar) -> Scalar:
        return inlining.load(scalar) if isinstance(scalar, Load) else scalar

    for visit in walk(op.body):
        if visit.event is not Event.ENTER:
            continue
        for root in scalars(visit.statement):
            for scalar in post_order_of((rewrite(root, rule),), operands):
                if isinstance(scalar, Load):
                    reads[scalar.buffer.name] = Read((None,) * len(scalar.indices), {})
    return list(reads.items())
