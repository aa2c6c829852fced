"""The cost model that all kernels of a model share, and what it has learned on this machine before."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from intarsia.autoschedule.cost_model import LearnedModel, usual_model
from intarsia.autoschedule.cost_model.samples import Samples
from intarsia.autoschedule.features import Machine
from intarsia.support.errors import DatabaseError, OutputError

GROWTH: Final = 0.1
"""Share by which samples must have grown before the model learns from all of them again."""
MOST_SAMPLES: Final = 20_000
"""With more than these, what was learned is not taken up: learning anew begins with the model at hand."""


@dataclass(frozen=True, slots=True)
class ScheduleModel:
    """A learned model with a file of what it knows.

    Attributes:
        model: Boosted trees, or ridge regression where the library for trees is missing.
        path: Where its samples are kept; None for nowhere.
        learned: Keys of the workloads that it has samples of from before.
    """

    model: LearnedModel
    path: Path | None
    learned: frozenset[str]

    @classmethod
    def open(cls, machine: Machine, seed: int, path: Path | None) -> Self:
        """A model that knows what is in a file, if it can be read; until it is warm, a draft stands in.

        Args:
            machine: What loops are to fit.
            seed: Of the model.
            path: The file; None for none.
        """
        model = usual_model(machine, seed)
        model.growth = GROWTH
        if path is None or not path.exists():
            return cls(model, path, frozenset())
        try:
            samples = Samples.load(path)
            if len(samples) <= MOST_SAMPLES:
                model.load(path)
                return cls(model, path, frozenset(samples.tasks))
        except DatabaseError:  # damaged, or with the features of another version: it learns again
            pass
        return cls(model, path, frozenset())

    def save(self) -> None:
        """Keep what it knows, if there is a place that can be written."""
        if self.path is not None and len(self.model):
            with suppress(OutputError, OSError):
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self.model.save(self.path)
