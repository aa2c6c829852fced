"""The limits of a tuning run: its budget, its clock, and what it reports."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Protocol

from intarsia.measure.measurer import Measurer
from intarsia.support.callbacks import never, silent


class Meter(Protocol):
    """Counts what measuring has used so far, as `Measurer` does."""

    @property
    def spent(self) -> float:
        """Seconds up to the last measurement."""

    @property
    def elapsed(self) -> float:
        """Seconds up to now."""

    @property
    def measuring_seconds(self) -> float:
        """Seconds that measuring candidates alone took."""

    @property
    def trials(self) -> int:
        """Number of measurements."""

    @property
    def candidates(self) -> int:
        """Number of those of them that measured candidates."""


@dataclass(slots=True)
class WallMeter:
    """Counts the seconds since it was made, and trials that its user adds.

    Attributes:
        clock: Function that returns seconds.
        trials: Number of trials so far.
    """

    clock: Callable[[], float] = time.monotonic
    trials: int = 0
    _begun: float = field(init=False)

    def __post_init__(self) -> None:
        self._begun = self.clock()

    @property
    def spent(self) -> float:
        """Seconds since this meter was made."""
        return self.clock() - self._begun

    @property
    def elapsed(self) -> float:
        """See Meter.elapsed."""
        return self.spent

    @property
    def measuring_seconds(self) -> float:
        """See Meter.measuring_seconds; whatever its user does counts."""
        return self.spent

    @property
    def candidates(self) -> int:
        """See Meter.candidates."""
        return self.trials


@dataclass(frozen=True, slots=True)
class Skipped:
    """Work that a run left out.

    Attributes:
        what: Name of the pass or the stage.
        reason: Why it was left out, or ended early.
    """

    what: str
    reason: str

    def __str__(self) -> str:
        """A line for people."""
        return f"{self.what}: {self.reason}"


@dataclass(eq=False)
class RunControl:
    """The budget of a tuning run or of a part of it, shared by all passes that run in it.

    Seconds and trials are counted by a meter. A measurer counts wall time, but only when it has measured, and
    a stored measurement with its original time: so a resumed run decides as an uninterrupted one does. What
    passes without a measurement ends the whole run only, not its parts.

    Attributes:
        seconds: Seconds after which nothing more is measured.
        trials: Number of measured candidates after which nothing more is measured.
        meter: Counts both.
        should_stop: Function that returns true to end the run with the measurements so far.
        on_progress: Called with the used share of the budget, from 0 to 1, and the progress of what runs.
        on_note: Called with sentences for people.
        skipped: Work that was left out so far, with reasons; shared by all parts of a run.
        proves: Whether to go on until nothing is left to try, however little is expected of it.
        patience: Seconds without a gain after which parts of the run that are to gain soon end.
    """

    seconds: float = inf
    trials: float = inf
    meter: Meter = field(default_factory=WallMeter)
    should_stop: Callable[[], bool] = never
    on_progress: Callable[[float, object], object] = silent
    on_note: Callable[[str], object] = silent
    skipped: list[Skipped] = field(default_factory=list)
    proves: bool = False
    patience: float = inf
    _outer: RunControl | None = None
    _gains_soon: bool = False
    _begun: tuple[float, int] = field(init=False)
    _renewed: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._begun = self.meter.spent, self.meter.trials

    @property
    def spent(self) -> float:
        """Seconds used since this control was made."""
        return self.meter.spent - self._begun[0]

    @property
    def used(self) -> int:
        """Trials used since this control was made."""
        return self.meter.trials - self._begun[1]

    @property
    def seconds_per_trial(self) -> float:
        """Mean seconds of all candidates of the meter, those before this control as well; 0 without any."""
        return self.meter.measuring_seconds / self.meter.candidates if self.meter.candidates else 0.0

    @property
    def seconds_left(self) -> float:
        """Seconds until this budget or the patience ends, or those of the run around it."""
        return min(self.budget_left, self.patience_left)

    @property
    def budget_left(self) -> float:
        """Seconds until this budget ends, or that of the run around it, however little is gained."""
        outer = inf if self._outer is None else self._outer.budget_left
        return max(0.0, min(self.seconds - self.spent, outer))

    @property
    def patience_left(self) -> float:
        """Seconds until this part, or one around it, ends because it gains nothing; else infinite."""
        outer = inf if self._outer is None else self._outer.patience_left
        is_patient = not self._gains_soon or self.proves
        return outer if is_patient else max(0.0, min(self.patience - (self.spent - self._renewed), outer))

    @property
    def trials_left(self) -> float:
        """Trials until this budget ends, or that of the run around it."""
        outer = inf if self._outer is None else self._outer.trials_left
        return max(0.0, min(self.trials - self.used, outer))

    @property
    def is_spent(self) -> bool:
        """Whether the seconds or the trials are used up."""
        return self.seconds_left <= 0 or self.trials_left < 1

    @property
    def is_over(self) -> bool:
        """Whether nothing more is measured: the budget is used up, or the run is to stop."""
        return self.is_spent or self.is_late or self.should_stop()

    @property
    def is_late(self) -> bool:
        """Whether the time of the whole run is over, with what has passed since its last measurement."""
        if self._outer is not None:
            return self._outer.is_late
        return self.meter.elapsed - self._begun[0] >= self.seconds

    @property
    def ending(self) -> str:
        """Why nothing more is measured, in words."""
        if self.should_stop():
            return "the run was stopped"
        if self.is_spent or self.is_late:
            if self.patience_left <= 0 and not self.is_late:
                return f"nothing was gained in {self.patience:.1f} s"
            return "the trials were used up" if self.trials_left < 1 else "the time was used up"
        return "the budget was used up"  # limits of a pass within this budget

    @property
    def fraction(self) -> float:
        """Used share of the budget, from 0 to 1."""
        shares = [_share(self.spent, self.seconds), _share(self.used, self.trials)]
        return min(1.0, max(shares))

    def granted(self, trials: int) -> int:
        """Return how many of a number of trials may start now."""
        return 0 if self.is_over else int(min(trials, self.trials_left))

    def renew(self) -> None:
        """Begin the patience anew: something was gained, or a measurement shows what can be gained."""
        self._renewed = self.spent
        if self._outer is not None:
            self._outer.renew()

    def part(self, *, seconds: float = inf, trials: float = inf, gains_soon: bool = False) -> RunControl:
        """Return the control of a part of the run, which begins now and ends no later than the run.

        Args:
            seconds: Seconds for the part.
            trials: Trials for the part.
            gains_soon: Whether the part ends when it has gained nothing for the patience of the run.
        """
        return RunControl(
            seconds,
            trials,
            self.meter,
            self.should_stop,
            self.on_progress,
            self.on_note,
            self.skipped,
            self.proves,
            self.patience,
            self,
            gains_soon,
        )

    def skip(self, what: str, reason: str) -> None:
        """Record that work is left out; once for the same work and reason."""
        skipped = Skipped(what, reason)
        if skipped not in self.skipped:
            self.skipped.append(skipped)
            self.on_note(f"left out: {skipped}")

    def report(self, detail: object = None) -> None:
        """Report the progress of what runs now."""
        self.on_progress(self.fraction, detail)

    @contextmanager
    def stopping(self, measurer: Measurer) -> Iterator[None]:
        """Let a measurer stop with this control, inside of the block."""
        before = measurer.should_stop
        measurer.should_stop = lambda: before() or self.is_over
        try:
            yield
        finally:
            measurer.should_stop = before


def _share(used: float, limit: float) -> float:
    """Return the used share of a limit: all of a limit of 0, nothing without a limit."""
    if not isfinite(limit):
        return 0.0
    return used / limit if limit > 0 else 1.0
