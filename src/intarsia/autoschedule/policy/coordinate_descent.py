"""Coordinate descent from the best measured program."""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from intarsia.autoschedule.cost_model import CostModel
from intarsia.autoschedule.policy.neighbours import neighbours
from intarsia.autoschedule.policy.scoring_model import scoring_model
from intarsia.autoschedule.task import SearchTask, SpaceOptions
from intarsia.native.loop_state import LoopState


class CoordinateDescent:
    """Moves from the best measured program to better neighbours, until there is none.

    Measurements decide which program is the best: each call proposes neighbours of the
    current best, ranked by a model. Where all neighbours were measured and none became
    the best, the descent has converged. (Droplet search; "The droplet search algorithm for
    kernel scheduling", TACO 2024, which starts from a few hundred programs of Ansor.)
    """

    def __init__(self, task: SearchTask, model: CostModel, space: SpaceOptions | None = None) -> None:
        """Create a descent that starts from the best program of the first call.

        Args:
            task: Search task.
            model: Model that ranks neighbours.
            space: Limits of the space.
        """
        self._task = task
        self._model = model
        self._space = space
        self._around: str | None = None
        self._neighbours: tuple[LoopState, ...] = ()

    def candidates(self, best: LoopState, count: int, measured: Container[str]) -> tuple[LoopState, ...]:
        """Return unmeasured neighbours of the best, at most `count`; none if all were measured.

        Args:
            best: Best program so far.
            count: Maximum number of neighbours.
            measured: Texts of measured programs.
        """
        if best.text != self._around:
            self._neighbours = neighbours(self._task, best, self._space)
            self._around = best.text
        new = [state for state in self._neighbours if state.text not in measured]
        if len(new) <= count:
            return tuple(new)
        scores = scoring_model(self._model).predict(self._task, new)
        return tuple(new[index] for index in np.argsort(-scores, kind="stable")[:count])
