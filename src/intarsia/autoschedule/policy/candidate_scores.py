"""What models say of the candidates of one search."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence

import numpy as np

from intarsia.autoschedule.cost_model import CostModel
from intarsia.autoschedule.task import SearchTask
from intarsia.native.loop_state import LoopState


class CandidateScores:
    """Scores of programs, each asked for once: a generation has many of the one before.

    With a draft model only the best share of the programs that are new in a generation gets a score of the
    learned model; the others count as those that cannot work (Pruner's draft and verify). What was measured
    is never left out: the draft has nothing to say against a measurement.
    """

    def __init__(
        self,
        task: SearchTask,
        model: CostModel,
        draft: CostModel | None = None,
        draft_share: float = 1.0,
        measured: Container[str] = (),
    ) -> None:
        """No scores yet.

        Args:
            task: What is searched.
            model: Gives the scores; it learns nothing while these are used.
            draft: Ranks what is new, if given, and another one than the model.
            draft_share: Which share of that the model sees, at least one program.
            measured: Texts of programs that the model always sees.
        """
        self._task = task
        self._model = model
        self._draft = draft if draft_share < 1 and draft != model else None
        self._draft_share = draft_share
        self._measured = measured
        self._known: dict[str, float] = {}

    def of(self, states: Sequence[LoopState]) -> list[float]:
        """A score for each program; higher is better, -inf is one that cannot work or was left out."""
        new = {state.text: state for state in states if state.text not in self._known}
        self._known |= dict.fromkeys(new, -math.inf)
        kept = self._kept(list(new.values()))
        if kept:
            scores = np.nan_to_num(self._model.predict(self._task, kept), nan=-np.inf, neginf=-np.inf)
            self._known |= {state.text: float(score) for state, score in zip(kept, scores, strict=True)}
        return [self._known[state.text] for state in states]

    def _kept(self, new: Sequence[LoopState]) -> list[LoopState]:
        """What the model sees: the measured ones, then the others by the draft's rank."""
        if self._draft is None:
            return list(new)
        proven = [state for state in new if state.text in self._measured]
        others = [state for state in new if state.text not in self._measured]
        if not others:
            return proven
        drafted = self._draft.predict(self._task, others)
        most = max(1, math.ceil(self._draft_share * len(others)))
        ranked = np.argsort(-drafted, kind="stable")[:most]
        return proven + [others[place] for place in ranked if drafted[place] > -np.inf]
