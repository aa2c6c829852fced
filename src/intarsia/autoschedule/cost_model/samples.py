"""Training samples of a learned model: features and costs of programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from intarsia.support.errors import DatabaseError
from intarsia.support.files import write_atomically

LEAST_WEIGHT: Final = 0.1
"""Weight of a program that is much slower than the best of its task."""


@dataclass(frozen=True, slots=True)
class Programs:
    """Programs as rows of features.

    Attributes:
        rows: Rows of all programs, float32 of shape (rows, features).
        owners: Program number of each row, ascending.
        count: Number of programs.
    """

    rows: NDArray[np.float32]
    owners: NDArray[np.int64]
    count: int

    @classmethod
    def of(cls, features: Sequence[NDArray[np.float32]], width: int) -> Programs:
        """Return the programs with those features; a program may have no rows."""
        rows = np.concatenate([np.zeros((0, width), np.float32), *features])
        owners = np.repeat(np.arange(len(features)), [len(rows_of) for rows_of in features])
        return cls(rows, owners, len(features))

    def sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum over the rows of each program; `values` has shape (rows,) or (rows, columns)."""
        if values.ndim == 1:
            return np.bincount(self.owners, weights=values, minlength=self.count).astype(np.float64)
        total = np.zeros((self.count, *values.shape[1:]))
        np.add.at(total, self.owners, values)
        return total


@dataclass(slots=True)
class Samples:
    """Measured programs of any tasks.

    Attributes:
        names: Names of the features.
        features: Feature rows of each program.
        tasks: Workload key of each program.
        costs: Seconds per call of each program; inf for a failure.
    """

    names: tuple[str, ...]
    features: list[NDArray[np.float32]] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.costs)

    def add(self, task: str, features: NDArray[np.float32], cost: float) -> None:
        """Add a program; a cost that is not a positive number is a failure."""
        self.features.append(features)
        self.tasks.append(task)
        self.costs.append(cost if np.isfinite(cost) and cost > 0 else float("inf"))

    @property
    def programs(self) -> Programs:
        """All samples as rows of features."""
        return Programs.of(self.features, len(self.names))

    @property
    def labels(self) -> NDArray[np.float64]:
        """Least cost of the task over the cost: 1 for the best of each task, 0 for failures."""
        best: dict[str, float] = {}
        for task, cost in zip(self.tasks, self.costs, strict=True):
            best[task] = min(cost, best.get(task, float("inf")))
        pairs = zip(self.tasks, self.costs, strict=True)
        return np.array([best[task] / cost if np.isfinite(cost) else 0.0 for task, cost in pairs])

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weight of each sample: its label, at least LEAST_WEIGHT; 1 for failures, so that they are learned.

        Upstream weighs failures by their label too, which is 0, and so learns nothing from them.
        """
        has_failed = ~np.isfinite(np.array(self.costs))
        return np.where(has_failed, 1.0, np.maximum(self.labels, LEAST_WEIGHT))

    def save(self, path: Path) -> None:
        """Write the samples as an .npz file.

        Raises:
            OutputError: The file cannot be written.
        """
        programs = self.programs
        about = json.dumps({"names": self.names, "tasks": self.tasks})
        with write_atomically(path) as temporary, temporary.open("wb") as file:
            np.savez_compressed(
                file,
                allow_pickle=False,
                about=np.frombuffer(about.encode(), np.uint8),
                rows=programs.rows,
                counts=np.bincount(programs.owners, minlength=programs.count),
                costs=np.array(self.costs, np.float64),
            )

    @classmethod
    def load(cls, path: Path) -> Samples:
        """Read the samples that `save` wrote.

        Raises:
            DatabaseError: The file is missing, damaged, or of another format.
        """
        try:
            with np.load(path, allow_pickle=False) as file:
                about = json.loads(file["about"].tobytes())
                names, tasks = tuple(map(str, about["names"])), list(map(str, about["tasks"]))
                rows, counts, costs = file["rows"], file["counts"], file["costs"].tolist()
            is_whole = len(tasks) == len(costs) == len(counts) and rows.shape == (sum(counts), len(names))
            if not is_whole:
                raise DatabaseError(f"{path} has another number of programs than its header says")
        except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile) as error:
            raise DatabaseError(
                f"cannot read the samples of a cost model from {path}: {error}",
                help="delete the file; the model learns again from records",
            ) from error
        parts = np.split(rows.astype(np.float32), np.cumsum(counts)[:-1]) if len(counts) else []
        return cls(names, list(parts), tasks, costs)
