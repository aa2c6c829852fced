"""Nothing grows from task to task: files, processes, threads, memory, temporary files."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path

import pytest
from tests.unit.measure.worker_pool import bad_tasks
from tests.unit.measure.worker_pool.live_processes import nothing_left_behind, open_files, own_children, until

from intarsia.measure.worker_pool import WorkerPool
from intarsia.measure.worker_pool.process_tree import held_bytes

SLACK_BYTES = 16 * bad_tasks.MEBIBYTE


def run(pool: WorkerPool, count: int, bad_every: int) -> None:
    """Run tasks, every so many of which kills its worker."""
    futures = [
        pool.submit(bad_tasks.exit_hard) if number % bad_every == 0 else pool.submit(bad_tasks.good, number)
        for number in range(1, count + 1)
    ]
    failed = [future for future in futures if future.exception() is not None]
    assert len(failed) == count // bad_every


@pytest.mark.slow
@pytest.mark.parametrize("count", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_nothing_is_left_behind_by_tasks(count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with nothing_left_behind(), WorkerPool(2) as pool:
        run(pool, 200, bad_every=20)
        files, threads, processes = open_files(), threading.active_count(), len(own_children())
        held = {pid: held_bytes(pid) for pid in own_children()}
        run(pool, count, bad_every=20)
        assert open_files() < files + 10  # some more or less while a worker is being replaced
        assert until(lambda: (threading.active_count(), len(own_children())) == (threads, processes))
        assert all(held_bytes(pid) < held[pid] + SLACK_BYTES for pid in own_children())
        (folder,) = tmp_path.iterdir()
        assert len(list(folder.iterdir())) <= 2
    assert not list(tmp_path.iterdir())
