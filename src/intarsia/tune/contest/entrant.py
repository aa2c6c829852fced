"""Entrants of the end-to-end contest: candidates for the whole model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from intarsia.measure.candidate_kind import WHOLE
from intarsia.measure.measure_input import MeasureInput
from intarsia.tune.contest.candidate_record import Status
from intarsia.tune.tuned_candidate import apply_decisions, decisions_and_base

CandidateKey: TypeAlias = tuple[str, str, str]
"""Digest of a workload, text of a target, and digest of a candidate."""
_DECIDED_OPTIONS: Final = ("schedules", "decisions")
"""Options of a target that decisions on single kernels are written as."""


@dataclass(frozen=True, slots=True)
class Entrant:
    """A candidate for the whole model.

    Attributes:
        name: Unique name for tables.
        input: Measure input of the candidate.
        refusal: Reason why it is not measured; "" if it is.
        status: Status of an entrant that is not measured.
    """

    name: str
    input: MeasureInput
    refusal: str = ""
    status: Status = Status.UNAVAILABLE

    @property
    def is_plain(self) -> bool:
        """Whether a toolchain runs the whole model by its own rules, without a measured decision."""
        has_decisions = any(self.input.target.option(name) is not None for name in _DECIDED_OPTIONS)
        return self.input.candidate.kind == WHOLE.kind and not has_decisions

    @property
    def key(self) -> CandidateKey:
        """Digests of workload and candidate, and the target: equal for entrants that are the same program."""
        return candidate_key(self.input)


def after_decisions(item: MeasureInput) -> MeasureInput:
    """Return the measure input with the candidate's decisions applied to the program."""
    decisions, base = decisions_and_base(item.candidate)
    if not decisions:
        return item
    workload = replace(item.workload, module=apply_decisions(item.workload.module, item.candidate))
    return MeasureInput(workload, item.target, base)


def candidate_key(item: MeasureInput) -> CandidateKey:
    """Return what identifies a candidate."""
    return item.workload.digest, str(item.target), item.candidate.digest
