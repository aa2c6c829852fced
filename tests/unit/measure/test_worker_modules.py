"""What workers are forked with: our own passes, and no thread."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.end_to_end.installed_packages import found_in, install_module

IMPORTED = """
import sys, threading
import intarsia.measure.worker_modules
print("package_of_others" in sys.modules, "intarsia.tune.passes" in sys.modules, threading.active_count())
"""
STARTS_A_THREAD = "import threading, time\nthreading.Thread(target=time.sleep, args=(2,)).start()\n"


@pytest.mark.processes
def test_packages_of_others_are_left_to_the_workers(tmp_path: Path) -> None:
    install_module(tmp_path, "package_of_others", STARTS_A_THREAD)
    run = subprocess.run(
        [sys.executable, "-c", IMPORTED],
        env={**os.environ, **found_in(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.split() == ["False", "True", "1"]
