"""Names of stages and loops in Python code that builds a schedule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from intarsia.native.dag.loop_name import loop_name
from intarsia.native.loop_state.stage import StageKind, axes_of
from intarsia.native.te.tensor import Operation
from intarsia.support.free_names import free_name

if TYPE_CHECKING:
    from intarsia.native.loop_state.loop_preview import LoopPreview


class PythonNames:
    """The variables for the loops of a state, while its steps are printed one after another.

    Attributes:
        before: State before the printed step.
        after: State after the printed step.
    """

    def __init__(self, state: LoopPreview, is_prefixed: bool) -> None:
        self.before = self.after = state
        self._is_prefixed = is_prefixed
        self._stages: list[str] = []
        self._short: list[list[str]] = []
        self._loops: list[list[str]] = []
        self._taken: set[str] = set()
        for stage_id in range(len(state.stages)):
            self.insert(stage_id)

    def stage(self, stage_id: int) -> str:
        """Return the variable of a stage's tensor."""
        return self._stages[stage_id]

    def loop(self, stage_id: int, iter_id: int) -> str:
        """Return the variable of a loop."""
        return self._loops[stage_id][iter_id]

    def short(self, stage_id: int, iter_id: int) -> str:
        """Return the variable of a loop without its stage's name: "i_o"."""
        return self._short[stage_id][iter_id]

    def replace(self, stage_id: int, begin: int, count: int, short: Sequence[str]) -> list[str]:
        """Replace `count` loops by others, and return their variables."""
        variables = [self._variable(stage_id, name) for name in short]
        self._short[stage_id][begin : begin + count] = short
        self._loops[stage_id][begin : begin + count] = variables
        return variables

    def reorder(self, stage_id: int, order: Sequence[int]) -> None:
        """Put the loops of a stage in another order."""
        self._short[stage_id] = [self._short[stage_id][number] for number in order]
        self._loops[stage_id] = [self._loops[stage_id][number] for number in order]

    def insert(self, stage_id: int) -> str:
        """Insert the stage that has this number after the step, and return its variable."""
        name = loop_name(self._op(stage_id).name)
        self._stages.insert(stage_id, self._free(name))
        self._short.insert(stage_id, [])
        self._loops.insert(stage_id, [])
        self.refresh(stage_id)
        return self._stages[stage_id]

    def refresh(self, stage_id: int) -> None:
        """Reset the loops of a stage to its axes after the step."""
        names = [loop_name(axis.name) for axis in axes_of(self._op(stage_id))]
        self._taken -= set(self._loops[stage_id])
        self._short[stage_id] = names
        self._loops[stage_id] = [self._variable(stage_id, name) for name in names]

    def axes_line(self, stage_id: int, *, with_reduction: bool = True) -> str:
        """Return the line `C_i, C_j, C_k = tuple(C.op.axis) + tuple(C.op.reduce_axis)`."""
        stage, loops = self._stages[stage_id], self._loops[stage_id]
        names = f"{loops[0]}," if len(loops) == 1 else ", ".join(loops) or "()"
        reduction = f" + tuple({stage}.op.reduce_axis)" if with_reduction else ""
        return f"{names} = tuple({stage}.op.axis){reduction}"

    def declarations(self) -> list[str]:
        """Return a line with the axes of every computed stage."""
        computed = [stage.kind is StageKind.COMPUTE for stage in self.before.stages]
        return [self.axes_line(stage_id) for stage_id, is_computed in enumerate(computed) if is_computed]

    def _op(self, stage_id: int) -> Operation:
        return self.after.stages[stage_id].op

    def _variable(self, stage_id: int, short: str) -> str:
        return self._free(f"{self._stages[stage_id]}_{short}" if self._is_prefixed else short)

    def _free(self, name: str) -> str:
        unused = free_name(name, self._taken)
        self._taken.add(unused)
        return unused
