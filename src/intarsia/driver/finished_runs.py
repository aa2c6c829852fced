"""Finished runs of `tune` in the database: an identical question has its answer there already."""

from __future__ import annotations

import time
from dataclasses import dataclass

from intarsia.collage.placement.plan import Plan
from intarsia.driver.kept_run import KeptRun, family_question_digest, question_digest
from intarsia.driver.relatives import layers_of, nearest_plan
from intarsia.driver.run_settings import RunSettings
from intarsia.measure.database import Database, ModelRecord, RunRecord
from intarsia.target import Host


@dataclass(frozen=True, slots=True, eq=False)
class FinishedRuns:
    """The finished runs of one question: a model, and all options but the plan.

    Attributes:
        database: Database of runs, or None.
        host: The machine, with its toolchains.
        settings: Settings of the run.
    """

    database: Database | None
    host: Host
    settings: RunSettings

    def find(self, plan: Plan | None) -> tuple[KeptRun, float] | None:
        """Return the finished run of the question, and its time as seconds since 1970; None without one.

        A plan that an earlier run without a plan has found adds nothing to the question.

        Args:
            plan: Plan that is a further candidate, or None.
        """
        with_plan = self._find_answer(plan)
        if with_plan is not None or plan is None:
            return with_plan
        without = self._find_answer(None)
        return without if without and without[0].plan.is_same(plan) else None

    def keep(self, run: KeptRun, plan: Plan | None) -> None:
        """Store a finished run, which then also is one of the models of its family.

        Raises:
            DatabaseError: It cannot be stored.
        """
        if self.database is None:
            return
        key = self._digest(plan)
        record = RunRecord(key, self.settings.workload.digest, self.host.digest, time.time(), run.to_text())
        self.database.keep_run(record)
        layers = " ".join(sorted(layers_of(self.settings.workload.module)))
        self.database.keep_model(ModelRecord(key, self._family_digest, layers))

    def nearest_plan(self) -> Plan | None:
        """Return the plan of the most similar model with the same question; None without one."""
        if self.database is None:
            return None
        return nearest_plan(self.database, self._family_digest, self.settings.workload.module)

    def _find_answer(self, plan: Plan | None) -> tuple[KeptRun, float] | None:
        record = None if self.database is None else self.database.find_run(self._digest(plan))
        if record is None:
            return None
        try:
            return KeptRun.from_text(record.outcome), record.finished_at
        except ValueError:  # of another version: the run is repeated
            return None

    def _digest(self, plan: Plan | None) -> str:
        asked = self.settings
        return question_digest(
            asked.workload,
            self.host,
            asked.targets,
            seconds=asked.seconds,
            trials=asked.trials,
            seed=asked.seed,
            searches=asked.searches,
            passes=asked.passes,
            plan=plan,
            proves=asked.proves,
            specializes=asked.specializes,
        )

    @property
    def _family_digest(self) -> str:
        asked = self.settings
        return family_question_digest(
            self.host,
            asked.targets,
            searches=asked.searches,
            passes=asked.passes,
            settings=asked.workload.settings,
        )
