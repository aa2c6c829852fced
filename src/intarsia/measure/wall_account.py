"""The wall time of a run, divided among its measurements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(eq=False)
class WallAccount:
    """Charges each new measurement with the wall time since the measurement before it.

    So the charges of a run add up to its wall time: what imports, judges and plans is charged to the
    measurement that follows. A charge is stored with its measurement. A resumed run counts it again, and not
    its own time to look the measurement up, so that it decides as the interrupted run did.

    A testbed may report more seconds than have passed, as planned testbeds do: then these are charged.

    Attributes:
        clock: Function that returns seconds.
        earlier: Seconds of the run before this account was opened.
    """

    clock: Callable[[], float]
    earlier: float = 0.0
    _since: float = field(init=False)
    _wall: float = field(init=False)
    _reported: float = field(default=0.0, init=False)
    _charged: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._since, self._wall = self.clock(), self.earlier

    @property
    def uncharged(self) -> float:
        """Seconds that the next measurement will be charged at least."""
        wall = self._wall + self.clock() - self._since
        return max(0.0, max(wall, self._reported) - self._charged)

    def charge(self, seconds: float) -> float:
        """Return the charge of a new measurement.

        Args:
            seconds: Seconds that the testbed reports for it.
        """
        now = self.clock()
        self._wall += now - self._since
        self._since = now
        self._reported += seconds
        charge = max(0.0, max(self._wall, self._reported) - self._charged)
        self._charged += charge
        return charge

    def skip(self) -> None:
        """Begin anew after a stored measurement, whose charge is stored too."""
        self._since, self._wall = self.clock(), min(self._wall, self._charged)
