"""Errors of impossible histories."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.support.errors import UsageError


@dataclass(eq=False)
class IllegalStepError(UsageError):
    """A step cannot be applied to a state, or the steps together put a stage in an impossible position.

    Attributes:
        step_id: Index of the step in the history, or None if no single step causes the error.
        stage_name: Name of the stage concerned.
    """

    step_id: int | None
    stage_name: str
