"""Histories that are not possible."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.support.errors import UsageError


@dataclass(eq=False)
class IllegalStepError(UsageError):
    """A step cannot be applied to a state, or the steps together place a stage where it cannot be.

    Attributes:
        step_id: The place of the step in the history, or None if no single step is to blame.
        stage_name: The stage that it is about.
    """

    step_id: int | None
    stage_name: str
