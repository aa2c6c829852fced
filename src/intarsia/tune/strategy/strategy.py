"""The interface of search strategies."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from intarsia.tune.strategy.trials import Point, Trials


@runtime_checkable
class Strategy(Protocol):
    """Searches the cheapest point (seed relax_pass_infra).

    The same seed and the same costs give the same trials.
    """

    def search(self, trials: Trials) -> Point:
        """The best point that was tried; ends when the limits of `trials` say so, or when it is done.

        Raises:
            UsageError: Nothing could be tried.
        """
