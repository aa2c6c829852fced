"""How thorough a run of the suite is: quick between two edits, full with `pytest --full` (`make slow`)."""

from __future__ import annotations

from hypothesis import settings

QUICK_EXAMPLES = 10
FULL_EXAMPLES = 100

settings.register_profile("quick", deadline=None, max_examples=QUICK_EXAMPLES)
settings.register_profile("full", deadline=None, max_examples=FULL_EXAMPLES)


def choose_effort(*, full: bool) -> None:
    """Choose the profile of hypothesis; test modules that are imported afterwards follow it."""
    settings.load_profile("full" if full else "quick")


def examples(full: int) -> int:
    """Return how many examples hypothesis tries in this run.

    Args:
        full: Number of examples in a full run; a quick run tries `QUICK_EXAMPLES` at most.
    """
    return full if settings.get_current_profile_name() == "full" else min(full, QUICK_EXAMPLES)
