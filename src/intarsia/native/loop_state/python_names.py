"""The names of stages and loops in Python code that makes a schedule."""

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
    """The variables that stand for the loops of a state, while its steps are printed one after the other.

    Attributes:
        before: The state before the step that is printed.
        after: The state after it.
    """

    def __init__(self, state: LoopPreview, is_prefixed: bool) -> None:
        self.before = self.after = state
        self._is_prefixed = is_prefixed
        self._stages: list[str] = []
        self._short: list[list[str]] = []
        self._loops: list[list[str]] = []
        self._taken: set[str] = set()
        for place in range(len(state.stages)):
            self.insert(place)

    def stage(self, stage_id: int) -> str:
        """The variable of a stage's tensor."""
        return self._stages[stage_id]

    def loop(self, stage_id: int, iter_id: int) -> str:
        """The variable of a loop."""
        return self._loops[stage_id][iter_id]

    def short(self, stage_id: int, iter_id: int) -> str:
        """The variable of a loop without its stage's name: "i_o"."""
        return self._short[stage_id][iter_id]

    def replace(self, stage_id: int, begin: int, count: int, short: Sequence[str]) -> list[str]:
        """Put other loops in the place of `count` ones; gives their variables."""
        made = [self._variable(stage_id, each) for each in short]
        self._short[stage_id][begin : begin + count] = short
        self._loops[stage_id][begin : begin + count] = made
        return made

    def reorder(self, stage_id: int, order: Sequence[int]) -> None:
        """Put the loops of a stage in another order."""
        self._short[stage_id] = [self._short[stage_id][each] for each in order]
        self._loops[stage_id] = [self._loops[stage_id][each] for each in order]

    def insert(self, stage_id: int) -> str:
        """Put in the stage of that number after the step; gives its variable."""
        name = loop_name(self._op(stage_id).name)
        self._stages.insert(stage_id, self._free(name))
        self._short.insert(stage_id, [])
        self._loops.insert(stage_id, [])
        self.refresh(stage_id)
        return self._stages[stage_id]

    def refresh(self, stage_id: int) -> None:
        """Give a stage the loops of its axes, as after the step."""
        names = [loop_name(axis.name) for axis in axes_of(self._op(stage_id))]
        self._taken -= set(self._loops[stage_id])
        self._short[stage_id] = names
        self._loops[stage_id] = [self._variable(stage_id, each) for each in names]

    def axes_line(self, stage_id: int, *, with_reduction: bool = True) -> str:
        """`C_i, C_j, C_k = tuple(C.op.axis) + tuple(C.op.reduce_axis)`."""
        stage, loops = self._stages[stage_id], self._loops[stage_id]
        names = f"{loops[0]}," if len(loops) == 1 else ", ".join(loops) or "()"
        reduction = f" + tuple({stage}.op.reduce_axis)" if with_reduction else ""
        return f"{names} = tuple({stage}.op.axis){reduction}"

    def declarations(self) -> list[str]:
        """The axes of every stage that is computed."""
        computed = [each.kind is StageKind.COMPUTE for each in self.before.stages]
        return [self.axes_line(place) for place, is_computed in enumerate(computed) if is_computed]

    def _op(self, stage_id: int) -> Operation:
        return self.after.stages[stage_id].op

    def _variable(self, stage_id: int, short: str) -> str:
        return self._free(f"{self._stages[stage_id]}_{short}" if self._is_prefixed else short)

    def _free(self, name: str) -> str:
        found = free_name(name, self._taken)
        self._taken.add(found)
        return found
