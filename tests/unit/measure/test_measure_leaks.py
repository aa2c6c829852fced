"""Nothing grows from candidate to candidate: files, processes, threads, memory, folders."""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path

import pytest
from tests.unit.measure.hazards import bad_to_build, bad_to_run
from tests.unit.measure.quick_testbed import as_input, quick_testbed
from tests.unit.measure.worker_pool.bad_tasks import MEBIBYTE
from tests.unit.measure.worker_pool.live_processes import nothing_left_behind, open_files, own_children, until

from intarsia.measure.database import Database
from intarsia.measure.measure_input import Candidate
from intarsia.measure.measurer import Measurer
from intarsia.measure.testbed.local import BATCH, KEPT_ARTIFACTS
from intarsia.measure.worker_pool.process_tree import held_bytes, process_bytes

pytestmark = pytest.mark.processes

SLACK_BYTES = 32 * MEBIBYTE
"""More than a worker holds (21 MiB): one may be starting anew at one of the two moments."""

REPLACED = 2
"""Threads, and processes, that may be missing for a moment while a worker is replaced."""


def candidates(first: int, count: int) -> list[Candidate]:
    """Of 16, one crashes while it is built, one while it runs, and one is wrong."""
    makers = {
        3: lambda number: bad_to_build(number, "segfault"),
        7: lambda number: bad_to_run(number, "abort"),
        11: lambda number: bad_to_run(number, wrong_from=1),
    }
    return [makers.get(number % 16, bad_to_run)(number) for number in range(first, first + count)]


@pytest.mark.parametrize("count", [160, pytest.param(2_000, marks=pytest.mark.slow)])
def test_nothing_is_left_behind_by_candidates(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with nothing_left_behind(), Database.open(tmp_path / "measurements.db") as database:
        with quick_testbed(temporary) as testbed:
            measurer = Measurer(testbed, database)
            measurer.measure([as_input(candidate) for candidate in candidates(0, 96)])
            files, threads, processes = open_files(), threading.active_count(), len(own_children())
            held, keepers = process_bytes(os.getpid()), {pid: held_bytes(pid) for pid in own_children()}
            results = measurer.measure([as_input(candidate) for candidate in candidates(96, count)])
            assert sum(result is not None and result.is_ok for result in results) == count * 13 // 16
            assert open_files() < files + 10  # some more or less while a worker is being replaced
            # A leak for each candidate that crashes would be ten of either, or more.
            assert until(lambda: threading.active_count() <= threads + REPLACED)
            assert until(lambda: len(own_children()) <= processes + REPLACED)
            assert process_bytes(os.getpid()) < held + SLACK_BYTES
            assert all(held_bytes(pid) < keepers[pid] + SLACK_BYTES for pid in own_children())
            (folder,) = temporary.iterdir()
            assert len(list((folder / "built").iterdir())) <= KEPT_ARTIFACTS + BATCH
            assert len(list((folder / "workloads").iterdir())) == 1
        assert not list(temporary.iterdir())
