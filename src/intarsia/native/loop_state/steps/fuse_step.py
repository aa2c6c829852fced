"""The fuse step: nested loops become one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from intarsia.native.loop_state.iterator import Iterator, Range
from intarsia.native.loop_state.relation import FuseRelation
from intarsia.native.loop_state.steps.lookup import loop_of
from intarsia.native.loop_state.steps.step import TransformStep
from intarsia.native.te.iter_var import IterKind
from intarsia.native.te.tensor import ComputeOp

if TYPE_CHECKING:
    from intarsia.native.loop_state.loop_preview import LoopPreview
    from intarsia.native.loop_state.python_names import PythonNames


@dataclass(frozen=True, slots=True)
class FuseStep(TransformStep):
    """Fuse neighbouring loops.

    Steps:
        ["FU", 1, [0, 1]]
    Before:
        Placeholder: A
        for i (0,8)
          for j (0,6)
            B = ...
        for i (0,8)
          for k (0,6)
            C = ...
    After:
        Placeholder: A
        for i@j@ (0,48)
          B = ...
        for i (0,8)
          for k (0,6)
            C = ...

    Attributes:
        fused_ids: Numbers of the loops, outermost first, each directly inside the previous one; () adds a
            loop of one iteration around a stage without loops.
    """

    fused_ids: tuple[int, ...]
    code: ClassVar[str] = "FU"

    def changed(self, state: LoopPreview) -> LoopPreview:
        """Return the loops after the fusion; stages inside the last fused loop are inside the new one."""
        stage = state.stages[self.stage_id]
        if not self.fused_ids:
            return self._with_singleton(state)
        parts = tuple(loop_of(self, state, iter_id) for iter_id in self.fused_ids)
        begin, end = self.fused_ids[0], self.fused_ids[-1]
        if self.fused_ids != tuple(range(begin, end + 1)):
            names = ", ".join(part.name for part in parts)
            raise state.step_error(self, f"found loops {names}; expected neighbours, outermost first")
        for iter_id in self.fused_ids[:-1]:
            inside = state.attach_map.attached.get((self.stage_id, iter_id))
            if inside:
                text = f"stage {state.stages[inside[0]].op.name} is inside loop {stage.iters[iter_id].name}"
                raise state.step_error(self, f"{text}: only the last fused loop may have stages inside")
        fused = _fused(parts)
        relation = FuseRelation(fused.name, tuple(p.name for p in parts), tuple(p.extent for p in parts))
        removed = end - begin
        moved = state.attach_map.with_loops_moved(
            self.stage_id, lambda loop: loop if loop < begin else max(begin, loop - removed)
        )
        after = state.with_stage(
            self.stage_id,
            iters=(*stage.iters[:begin], fused, *stage.iters[end + 1 :]),
            relations=(*stage.relations, relation),
        )
        return after.with_fields(attach_map=moved)

    def _with_singleton(self, state: LoopPreview) -> LoopPreview:
        stage = state.stages[self.stage_id]
        if stage.iters or not isinstance(stage.op, ComputeOp):
            stage_text = ", ".join(loop.name for loop in stage.iters) or "no computation by elements"
            raise state.step_error(self, f"fusing no loops is for a stage without loops; found {stage_text}")
        loop = Iterator("", Range(0, 1), IterKind.SPATIAL)
        return state.with_stage(self.stage_id, iters=(loop,), relations=(FuseRelation("", (), ()),))

    def print_python(self, names: PythonNames) -> list[str]:
        """Return `C_i_j_fused = s[C].fuse(C_i, C_j)`."""
        stage = names.stage(self.stage_id)
        parts = [names.loop(self.stage_id, iter_id) for iter_id in self.fused_ids]
        short = [names.short(self.stage_id, iter_id) for iter_id in self.fused_ids]
        begin = self.fused_ids[0] if self.fused_ids else 0
        (fused,) = names.replace(
            self.stage_id, begin, len(parts), ["_".join([*short, "fused"]) if short else "singleton"]
        )
        return [f"{fused} = s[{stage}].fuse({', '.join(parts)})"]


def _fused(parts: tuple[Iterator, ...]) -> Iterator:
    extents = [part.extent for part in parts]
    known_extents = [extent for extent in extents if extent is not None]
    kinds = {part.kind for part in parts}
    return Iterator(
        "".join(f"{part.name}@" for part in parts),
        Range(0, math.prod(known_extents)) if len(known_extents) == len(parts) else None,
        parts[0].kind if len(kinds) == 1 else IterKind.MIXED,
        orig_iters=parts,
    )
