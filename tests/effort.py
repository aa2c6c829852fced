"""The effort of a run of the suite: quick between two edits, a sixteenth in CI, full with `make slow`."""

from __future__ import annotations

from typing import Final

from hypothesis import settings

QUICK_EXAMPLES: Final = 3
EFFORTS: Final = {"quick": QUICK_EXAMPLES, "sixteenth": 6, "quarter": 25, "half": 50, "full": 100}
"""Profiles of hypothesis, with the number of examples of a test that states none."""

_REPEATABLE: Final = frozenset({"quick", "sixteenth"})
"""Efforts of the runs that say whether a change may land: the same draws each time, whatever others drew."""


def choose_effort(name: str, *, is_random: bool = False) -> None:
    """Choose the profile of hypothesis; test modules that are imported afterwards follow it.

    Args:
        name: One of `EFFORTS`.
        is_random: Whether a quick run draws other examples each time as well, as longer runs do.
    """
    settings.register_profile(
        name,
        deadline=None,
        max_examples=EFFORTS[name],
        derandomize=name in _REPEATABLE and not is_random,
    )
    settings.load_profile(name)


def examples(full: int, quick: int = QUICK_EXAMPLES) -> int:
    """Return the number of examples that hypothesis tries in this run.

    Args:
        full: Number of examples in a full run.
        quick: The largest number of examples in a quick run; fewer where one test runs over many subjects.
    """
    quick = min(full, quick)
    return {
        "quick": quick,
        "sixteenth": max(quick, full // 16),
        "quarter": max(quick, full // 4),
        "half": max(quick, full // 2),
        "full": full,
    }[settings.get_current_profile_name()]


def is_full_effort() -> bool:
    """Return whether this run tries everything, as `make slow` does and CI does not."""
    return settings.get_current_profile_name() == "full"
