"""The wheel intarsia-runtime, built from this tree."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "wheels" / "runtime"


def build_runtime_wheel(folder: Path) -> Path:
    """Build the wheel in a folder, with the packages of this environment, and return its path."""
    done = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, SOURCE],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return next(folder.glob("*.whl"))
