"""A run that is killed and started again ends as an undisturbed one, and measures nothing twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.unit.measure.quick_testbed import HOST, REFERENCE, WORKLOAD
from tests.unit.measure.run_to_kill import BEST, COUNT, candidates
from tests.unit.measure.worker_pool.live_processes import until

from intarsia.measure.database import Database

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[3]
MARK = "TEST_OF_RESUMING"
KILLS = 8


def start(folder: Path) -> subprocess.Popen[str]:
    (folder / "tmp").mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-m", "tests.unit.measure.run_to_kill", folder],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder / "tmp"), MARK: str(folder)},
    )


def processes_of(folder: Path) -> list[int]:
    """All processes of a run: they, and what they start, have the mark in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARK}={folder}\0".encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:  # it has ended, or is not ours
            continue
    return found


def kill_at_random(run: subprocess.Popen[str], chance: random.Random) -> bool:
    """Kill a run while it starts or after some more results; whether it had not ended by then."""
    assert run.stdout is not None
    if chance.random() < 0.3:
        time.sleep(chance.uniform(0.0, 2.5))
    else:
        for _ in range(chance.randint(1, 6)):  # the first line comes before the first result
            run.stdout.readline()
        time.sleep(chance.uniform(0.0, 0.15))
    run.kill()
    run.communicate(timeout=60)
    return run.returncode == -signal.SIGKILL


def executions(folder: Path) -> Counter[int]:
    """How often each candidate was run."""
    return Counter(int(path.name.partition(".")[0]) for path in (folder / "log").glob("*"))


def committed(folder: Path) -> set[int]:
    """The candidates that the database knows."""
    if not (folder / "measurements.db").exists():
        return set()
    with Database.open(folder / "measurements.db") as database:
        return {
            number
            for number, candidate in enumerate(candidates(folder))
            if database.find(WORKLOAD.digest, REFERENCE, candidate, HOST.digest) is not None
        }


def last_line(folder: Path) -> str:
    """What a run that is left alone says at its end."""
    run = start(folder)
    said, _ = run.communicate(timeout=600)
    assert run.returncode == 0
    return said.splitlines()[-1]


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
def test_a_killed_run_goes_on_where_it_was(tmp_path: Path, seed: int) -> None:
    chance, kills = random.Random(seed), 0
    while kills < KILLS and kill_at_random(start(tmp_path), chance):
        kills += 1
        assert until(lambda: not processes_of(tmp_path))  # workers die with the run
        assert len(list((tmp_path / "tmp").iterdir())) <= 1  # of this run; those before are removed
        done, ran = committed(tmp_path), executions(tmp_path)
        assert len(set(ran) - done) <= 1  # the one in flight
        assert sum(ran.values()) <= len(done) + kills
    assert kills > 0
    assert last_line(tmp_path) == f"best {BEST} of {COUNT}"  # as without kills, see below
    assert set(executions(tmp_path)) == set(range(COUNT))
    assert sum(executions(tmp_path).values()) <= COUNT + kills
    assert not list((tmp_path / "tmp").iterdir())
    assert last_line(tmp_path) == f"best {BEST} of {COUNT}"
    assert sum(executions(tmp_path).values()) <= COUNT + kills  # nothing is measured by another run


def test_an_undisturbed_run_measures_each_candidate_once(tmp_path: Path) -> None:
    assert last_line(tmp_path) == f"best {BEST} of {COUNT}"
    assert executions(tmp_path) == Counter(range(COUNT))
    assert committed(tmp_path) == set(range(COUNT))
    assert not list((tmp_path / "tmp").iterdir())
