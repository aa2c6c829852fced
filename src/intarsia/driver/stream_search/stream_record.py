"""What was measured of a program with a choice of streams, threads and batch."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from intarsia.measure.load.load_result import LoadResult
from intarsia.runtime.stream_choice import StreamChoice


@dataclass(frozen=True, slots=True)
class StreamRecord:
    """A program in a pool under load.

    Attributes:
        name: Name of the program: its toolchains.
        choice: Streams, threads and batch.
        rate: Requests per second at saturation; median over the rounds.
        load: Latencies at the common arrival rate; None if it was not measured there.
        reason: Reason for which it cannot be chosen, or the empty string.
        chosen: Whether it is the best by the objective.
    """

    name: str
    choice: StreamChoice
    rate: float
    load: LoadResult | None = None
    reason: str = ""
    chosen: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the record as plain data."""
        return asdict(self)
