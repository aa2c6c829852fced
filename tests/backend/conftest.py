"""One run of ONNX's backend tests for the whole session, also where pytest-xdist runs several processes."""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from pathlib import Path

import pytest
from tests.backend.result import Report
from tests.backend.suite import run_suite

FILE = "backend-report.json"


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Report:
    """What became of every case in every column; run by the process that asks first."""
    shared = tmp_path_factory.getbasetemp()
    if hasattr(pytestconfig, "workerinput"):  # a process of pytest-xdist has a folder inside the session's
        shared = shared.parent
    path = shared / FILE
    with (shared / "backend.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            text = json.dumps(run_suite().to_json(), indent=1)
            path.write_text(text, encoding="utf-8")
            _kept(pytestconfig).write_text(text, encoding="utf-8")
    return Report.from_json(json.loads(path.read_text(encoding="utf-8")))


def pytest_configure(config: pytest.Config) -> None:
    """Forget the table of the session before."""
    if not hasattr(config, "workerinput"):
        _kept(config).unlink(missing_ok=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the table, if the suite was run."""
    path = _kept(config)
    if path.exists():
        found = Report.from_json(json.loads(path.read_text(encoding="utf-8")))
        terminalreporter.section("ONNX backend tests")
        terminalreporter.write_line(f"{found.table()}\n\neverything: {path}")


def _kept(config: pytest.Config) -> Path:
    """Return where processes of a run leave their report; `-p no:cacheprovider` leaves no cache of pytest."""
    if cache := getattr(config, "cache", None):
        return Path(cache.mkdir("backend")) / FILE
    return Path(tempfile.gettempdir()) / f"intarsia-backend-{os.getuid()}.json"
