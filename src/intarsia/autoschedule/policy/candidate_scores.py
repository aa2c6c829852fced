"""Model scores of the candidates of one search."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence

import numpy as np

from intarsia.autoschedule.cost_model import CostModel
from intarsia.autoschedule.task import SearchTask
from intarsia.native.loop_state import LoopState


class CandidateScores:
    """Scores of programs, each predicted once: a generation repeats many programs of the one before.

    With a draft model, only the best share of the new programs of a generation is scored by the
    learned model; the others score -inf (draft and verify of Pruner). Measured programs are
    always scored: a measurement outweighs the draft.
    """

    def __init__(
        self,
        task: SearchTask,
        model: CostModel,
        draft: CostModel | None = None,
        draft_share: float = 1.0,
        measured: Container[str] = (),
    ) -> None:
        """Create an empty cache of scores.

        Args:
            task: Search task.
            model: Model of the scores; it must not be updated while the cache is used.
            draft: Model that ranks new programs, if given and different from `model`.
            draft_share: Share of the new programs that the model scores, at least one program.
            measured: Texts of programs that the model always scores.
        """
        self._task = task
        self._model = model
        self._draft = draft if draft_share < 1 and draft != model else None
        self._draft_share = draft_share
        self._measured = measured
        self._scores: dict[str, float] = {}

    def of(self, states: Sequence[LoopState]) -> list[float]:
        """Return a score per program; higher is better, -inf if it cannot be lowered or was pruned."""
        new = {state.text: state for state in states if state.text not in self._scores}
        self._scores |= dict.fromkeys(new, -math.inf)
        kept = self._prune(list(new.values()))
        if kept:
            scores = np.nan_to_num(self._model.predict(self._task, kept), nan=-np.inf, neginf=-np.inf)
            self._scores |= {state.text: float(score) for state, score in zip(kept, scores, strict=True)}
        return [self._scores[state.text] for state in states]

    def _prune(self, new: Sequence[LoopState]) -> list[LoopState]:
        """Return the programs that the model scores: measured ones, then the others by the draft's rank."""
        if self._draft is None:
            return list(new)
        proven = [state for state in new if state.text in self._measured]
        others = [state for state in new if state.text not in self._measured]
        if not others:
            return proven
        drafted = self._draft.predict(self._task, others)
        most = max(1, math.ceil(self._draft_share * len(others)))
        # A stable sort keeps the order of equal scores, so that a seed repeats a search exactly.
        ranked = np.argsort(-drafted, kind="stable")[:most]
        return proven + [others[index] for index in ranked if drafted[index] > -np.inf]
