"""Preloaded by workers of tests: when they build and run candidates is written down, line by line.

The file is that of the environment variable INTARSIA_TEST_RECORD; without it nothing is written.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from intarsia.measure import candidate_task
from intarsia.measure.candidate_task import Outcome

RECORD = "INTARSIA_TEST_RECORD"
LONGER_S = 0.05
"""Each run takes so much longer than it needs to, so that two that overlap would be seen to."""

T = TypeVar("T")


class Span(NamedTuple):
    """One line; seconds of CLOCK_MONOTONIC, which all processes of a machine share."""

    what: str
    pid: int
    begin: float
    end: float


def spans(path: Path) -> list[Span]:
    lines = (line.split() for line in path.read_text().splitlines())
    return [Span(what, int(pid), float(begin), float(end)) for what, pid, begin, end in lines]


def recorded(what: str, function: Callable[..., Outcome]) -> Callable[..., Outcome]:
    def wrapper(*arguments: object) -> Outcome:
        begin = time.monotonic()
        outcome = function(*arguments)
        time.sleep(LONGER_S)
        with Path(os.environ[RECORD]).open("a") as file:  # short lines are appended in one piece
            file.write(f"{what} {os.getppid()} {begin} {time.monotonic()}\n")
        return outcome

    return wrapper


if RECORD in os.environ:
    for name, what in (("build_candidate", "build"), ("run_candidate", "run")):
        setattr(candidate_task, name, recorded(what, getattr(candidate_task, name)))
