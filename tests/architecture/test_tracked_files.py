"""What is in the repository: sources and small pictures, nothing that a run has written."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
LARGEST = 256 * 1024


def test_no_tracked_file_is_large() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    paths = [ROOT / name for name in listed.decode().split("\0") if name]
    assert len(paths) > 1000
    sizes = {str(path.relative_to(ROOT)): path.stat().st_size for path in paths if path.is_file()}
    assert not {name: size for name, size in sizes.items() if size > LARGEST}
