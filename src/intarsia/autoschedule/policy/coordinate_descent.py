"""From a good program to the best one near it."""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from intarsia.autoschedule.cost_model import CostModel
from intarsia.autoschedule.policy.neighbours import neighbours
from intarsia.autoschedule.policy.speaking import speaking
from intarsia.autoschedule.task import SearchTask, SpaceOptions
from intarsia.native.loop_state import LoopState


class CoordinateDescent:
    """Walks from the best measured program to better neighbours, until there is none.

    Which program is the best is for measurements to say: each call looks at the neighbours of the one that is
    the best by then, those first of which a model expects most. Where all of them are known and none became
    the best, it stands, and there is nothing to measure. (Droplet search; "The droplet search algorithm for
    kernel scheduling", TACO 2024, which begins with a few hundred programs of Ansor.)
    """

    def __init__(self, task: SearchTask, model: CostModel, space: SpaceOptions | None = None) -> None:
        """A walk that begins wherever the best is.

        Args:
            task: What is searched.
            model: Says which neighbours come first.
            space: Limits of neighbours.
        """
        self._task = task
        self._model = model
        self._space = space
        self._around: str | None = None
        self._neighbours: tuple[LoopState, ...] = ()

    def candidates(self, best: LoopState, count: int, measured: Container[str]) -> tuple[LoopState, ...]:
        """Neighbours that were not measured, at most so many; none where the best has no unknown neighbour.

        Args:
            best: The best program by now.
            count: How many.
            measured: Texts of programs that are known.
        """
        if best.text != self._around:
            self._neighbours = neighbours(self._task, best, self._space)
            self._around = best.text
        new = [state for state in self._neighbours if state.text not in measured]
        if len(new) <= count:
            return tuple(new)
        scores = speaking(self._model).predict(self._task, new)
        return tuple(new[place] for place in np.argsort(-scores, kind="stable")[:count])
