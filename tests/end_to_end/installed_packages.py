"""Packages that are not part of Intarsia, installed into folders of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def install_example(name: str, place: Path) -> Path:
    """Install an example package as a user does, but without the network and next to the environment."""
    source, target = place / "source", place / "installed"
    shutil.copytree(EXAMPLES / name, source)  # setuptools builds where the source is
    flags = ("--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check")
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", *flags, "--target", target, source],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return target


def install_module(place: Path, module: str, source: str) -> Path:
    """What an installer leaves of a package with one module, which announces passes."""
    info = place / f"{module}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[intarsia.passes]\n{module} = {module}\n")
    (place / f"{module}.py").write_text(source)
    return place


def found_in(*places: Path) -> Mapping[str, str]:
    """Environment variables under which a process finds the packages installed there."""
    return {"PYTHONPATH": os.pathsep.join(map(str, places))}
