"""A keeper, seen from the parent."""

from __future__ import annotations

import os
from pathlib import Path

from intarsia.measure.worker_pool.fork_server_process import ForkServerProcess
from intarsia.measure.worker_pool.keeper_process import KeeperProcess
from intarsia.measure.worker_pool.messages import Command, Failed


def test_the_last_report_is_read_though_the_keeper_ended_before_it_read_its_commands(tmp_path: Path) -> None:
    """The kernel then reports a lost connection before it hands out what the keeper had sent."""
    server = ForkServerProcess.shared(("intarsia.no_such_module",))
    keeper = KeeperProcess(str(tmp_path), server)
    reader, writer = os.pipe()
    keeper.command(Command.START, writer)
    assert keeper.has_ended(60.0)
    report = keeper.report()
    assert isinstance(report, Failed)
    assert report.problem.startswith("importing intarsia.no_such_module: ModuleNotFoundError: ")
    assert keeper.report() is None
    assert keeper.report() is None
    keeper.close()
    keeper.wait(60.0)
    server.release()
    for descriptor in (reader, writer):
        os.close(descriptor)
