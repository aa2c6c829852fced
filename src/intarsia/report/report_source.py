"""What a report is made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from intarsia.report.explanation import Explanation
from intarsia.runtime.profile import Profile


@dataclass(frozen=True, slots=True)
class ReportSource:
    """A finished tuning run.

    Attributes:
        explanation: Records of the run.
        origin: Sentence on the source of the records, such as an artifact with its path.
        host: Facts of the machine of the measurements (`Host.to_json`); empty if they are not recorded.
        reference: Description of the reference result; "" if it is not recorded.
        finished_at: Unix time in seconds at which the run ended, or None.
        profile: Profile of the winner, or None.
        profile_gap: Why there is no profile; "" if there is one.
    """

    explanation: Explanation
    origin: str
    host: Mapping[str, object] = field(default_factory=dict)
    reference: str = ""
    finished_at: float | None = None
    profile: Profile | None = None
    profile_gap: str = ""
