"""Tuning passes that are interrupted anywhere, and resumed, end as those that nobody has interrupted."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.interrupted_tuning import Moments, told, tuned

from intarsia.toolchain.this_host import _first_seen

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[3]
SEED = 20
COUNT = 12
"""So many moments are drawn of all, and so many of each of some kinds."""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, object], list[str]]:
    """What a run comes to, and the kinds of its moments."""
    # An earlier test may have asked first for the toolchains of this machine while it had one of its own.
    _first_seen.cache_clear()
    moments = Moments()
    result = tuned(tmp_path_factory.mktemp("undisturbed"), moments)
    assert result is not None
    assert result.chosen.name == "right tuned"
    return told(result), moments.seen


def resumed(folder: Path) -> dict[str, object]:
    """What the next run comes to."""
    result = tuned(folder, Moments())
    assert result is not None
    return told(result)


@pytest.mark.slow
@pytest.mark.parametrize("draw", range(COUNT))
def test_a_run_that_ends_anywhere_is_resumed(
    tmp_path: Path, undisturbed: tuple[dict[str, object], list[str]], draw: int
) -> None:
    whole, moments = undisturbed
    at = random.Random(SEED + draw).randint(1, len(moments))
    assert tuned(tmp_path, Moments(end_at=at)) is None
    assert resumed(tmp_path) == whole


@pytest.mark.parametrize("draw", range(2))
@pytest.mark.parametrize(
    "kind",
    ["a candidate is built", "a candidate is measured", "after a record is kept", "before a pass begins"],
)
def test_a_run_that_ends_at_such_a_moment_is_resumed(
    tmp_path: Path, undisturbed: tuple[dict[str, object], list[str]], kind: str, draw: int
) -> None:
    """In a build, between a measurement and its record, behind a record, between passes."""
    whole, moments = undisturbed
    places = [number for number, each in enumerate(moments, 1) if each == kind]
    ended = Moments(end_at=random.Random(SEED + draw).choice(places))
    assert tuned(tmp_path, ended) is None
    assert ended.seen[-1] == kind
    assert resumed(tmp_path) == whole


def test_a_run_that_ends_again_and_again_is_resumed(
    tmp_path: Path, undisturbed: tuple[dict[str, object], list[str]]
) -> None:
    whole, moments = undisturbed
    chance = random.Random(SEED)
    for _ in range(5):
        assert tuned(tmp_path, Moments(end_at=chance.randint(1, len(moments) // 2))) is None
    assert resumed(tmp_path) == whole


@pytest.mark.slow
@pytest.mark.parametrize("draw", range(6))
def test_a_run_that_was_asked_to_stop_is_resumed(
    tmp_path: Path, undisturbed: tuple[dict[str, object], list[str]], draw: int
) -> None:
    whole, moments = undisturbed
    at = random.Random(SEED + draw).randint(1, len(moments))
    stopped = tuned(tmp_path, Moments(stop_at=at))
    assert stopped is None or stopped.stopped
    assert resumed(tmp_path) == whole


def started(folder: Path) -> subprocess.Popen[str]:
    """A process that tunes, and tells each moment, at the end what it has come to."""
    command = [sys.executable, "-m", "tests.unit.driver.tuning_to_kill", str(folder)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["SIGKILL", "SIGINT"])
def test_a_process_that_is_killed_is_resumed(
    tmp_path: Path, undisturbed: tuple[dict[str, object], list[str]], number: signal.Signals
) -> None:
    whole, moments = undisturbed
    chance, ended = random.Random(SEED), 0
    for _ in range(10):
        run = started(tmp_path)
        assert run.stdout is not None
        for _ in range(chance.randint(1, len(moments) // 2)):
            run.stdout.readline()
        run.send_signal(number)
        run.communicate(timeout=120)
        ended += run.returncode == -number
    assert ended > 0
    said, _ = started(tmp_path).communicate(timeout=120)
    assert json.loads(said.splitlines()[-1]) == json.loads(json.dumps(whole))
