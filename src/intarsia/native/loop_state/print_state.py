"""A state as text: its loop nests."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.native.loop_state.attach_map import AttachMap
from intarsia.native.loop_state.iterator import Iterator
from intarsia.native.loop_state.stage import ComputeAt, Stage, StageKind


def state_text(stages: Sequence[Stage], attach_map: AttachMap, *, show_trivial_loops: bool = False) -> str:
    """Return the loops of every stage that is not inlined, attached stages inside the loops of others.

    Placeholder: A, B
    parallel i.0@j.0@ (0,2048)
      for k (0,512)
        vectorize j.1 (0,8)
          C = ...

    Args:
        stages: The stages; unknown ranges print as `(None)`.
        attach_map: Map of the stages inside loops of others.
        show_trivial_loops: Whether loops of one iteration are printed.
    """
    placeholders = [stage.op.name for stage in stages if stage.kind is StageKind.PLACEHOLDER]
    lines = [f"Placeholder: {', '.join(placeholders)}"]
    for stage_id, stage in enumerate(stages):
        if stage.kind is StageKind.COMPUTE and stage.compute_at is ComputeAt.ROOT:
            lines += _stage_lines(stages, attach_map, stage_id, 0, show_trivial_loops)
    return "".join(f"{line}\n" for line in lines)


def _stage_lines(
    stages: Sequence[Stage], attach_map: AttachMap, stage_id: int, depth: int, show_trivial_loops: bool
) -> list[str]:
    stage = stages[stage_id]
    lines = []
    if stage.auto_unroll_max_step:
        lines.append(f"{'  ' * depth}{stage.op.name} auto_unroll: {stage.auto_unroll_max_step}")
    if stage.storage_offset:
        lines.append(f"{'  ' * depth}{stage.op.name} storage_offset: {stage.storage_offset}")
    for iter_id, loop in enumerate(stage.iters):
        if show_trivial_loops or loop.extent != 1:
            lines.append(f"{'  ' * depth}{_loop_text(loop)}")
            depth += 1
        for attached in attach_map.attached.get((stage_id, iter_id), ()):
            lines += _stage_lines(stages, attach_map, attached, depth, show_trivial_loops)
    lines.append(f"{'  ' * depth}{stage.op.name} = ...")
    return lines


def _loop_text(loop: Iterator) -> str:
    values = "(None)" if loop.range is None else str(loop.range)
    return f"{loop.annotation.keyword} {loop.name} {values}"
