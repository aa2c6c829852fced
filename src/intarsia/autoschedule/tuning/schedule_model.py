"""The cost model that all kernels of a model share, with its samples of earlier runs on this machine."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from intarsia.autoschedule.cost_model import LearnedModel
from intarsia.autoschedule.cost_model.samples import Samples
from intarsia.support.errors import DatabaseError, OutputError

GROWTH: Final = 0.1
"""Relative growth of the samples that triggers a refit."""
MOST_SAMPLES: Final = 20_000
"""Maximum number of stored samples that are loaded; with more, training starts from scratch."""


@dataclass(frozen=True, slots=True)
class ScheduleModel:
    """A learned model with a file of its samples.

    Attributes:
        model: Boosted trees, or ridge regression where LightGBM is missing.
        path: File of its samples, or None.
        learned: Keys of the workloads with loaded samples.
    """

    model: LearnedModel
    path: Path | None
    learned: frozenset[str]

    @classmethod
    def open(cls, model: LearnedModel, path: Path | None) -> Self:
        """Give a model the samples of a file, if it can be read; its draft predicts until it is warm.

        Args:
            model: Model without samples.
            path: File of samples, or None.
        """
        model.growth = GROWTH
        if path is None or not path.exists():
            return cls(model, path, frozenset())
        try:
            samples = Samples.load(path)
            if len(samples) <= MOST_SAMPLES:
                model.load(path)
                return cls(model, path, frozenset(samples.tasks))
        except DatabaseError:  # damaged, or with the features of another version: training restarts
            pass
        return cls(model, path, frozenset())

    def save(self) -> None:
        """Write the samples to the file, if that is possible."""
        if self.path is not None and len(self.model):
            with suppress(OutputError, OSError):
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self.model.save(self.path)
