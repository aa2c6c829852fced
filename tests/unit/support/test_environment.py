"""Processes start while another thread changes the environment."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from intarsia.support.environment import copy_environment


def test_it_is_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTARSIA_TEST", "before")
    copied = copy_environment()
    assert copied == dict(os.environ)
    monkeypatch.setenv("INTARSIA_TEST", "after")
    assert copied["INTARSIA_TEST"] == "before"


@pytest.mark.skipif(sys.platform != "linux", reason="/bin/true")
def test_processes_start_while_variables_come_and_go() -> None:
    """Of those that inherit the environment of the process, four in five fail here."""
    is_over = threading.Event()
    names = [f"INTARSIA_TEST_{number}" for number in range(400)]

    def change() -> None:
        while not is_over.is_set():
            for name in names:
                os.environ[name] = "value"
            for name in names:
                del os.environ[name]

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(50):
            subprocess.run(["/bin/true"], env=copy_environment(), check=True)
    finally:
        is_over.set()
        thread.join()
