"""Who takes part in the end-to-end contest: a way to run the whole model."""

from __future__ import annotations

from dataclasses import dataclass, replace

from intarsia.driver.records import Status
from intarsia.measure.measure_input import MeasureInput
from intarsia.tune.tuned_candidate import apply_decisions, decisions_and_base


@dataclass(frozen=True, slots=True)
class Entrant:
    """A way to run the whole model.

    Attributes:
        name: For tables, different for each.
        input: The candidate for the whole model.
        refusal: Why it is not measured at all; "" if it is.
        status: What it is called then.
    """

    name: str
    input: MeasureInput
    refusal: str = ""
    status: Status = Status.UNAVAILABLE

    @property
    def key(self) -> tuple[str, str]:
        """Equal for entrants that are the same program: the target, and the digest of the candidate."""
        return candidate_key(self.input)


def after_decisions(item: MeasureInput) -> MeasureInput:
    """The same behind its decisions: the program that they lead to, and what is done with it."""
    decisions, base = decisions_and_base(item.candidate)
    if not decisions:
        return item
    workload = replace(item.workload, module=apply_decisions(item.workload.module, item.candidate))
    return MeasureInput(workload, item.target, base)


def candidate_key(item: MeasureInput) -> tuple[str, str]:
    """The target, and the digest of the candidate: what tells apart the ways to run one model."""
    return str(item.target), item.candidate.digest
