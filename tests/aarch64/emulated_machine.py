"""Runs Python programs as on a Neoverse N1, by QEMU's user emulation, with the wheel intarsia-runtime."""

from __future__ import annotations

import subprocess
import zipfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".aarch64"
EMULATOR = FOLDER / "qemu/usr/bin/qemu-aarch64-static"
CPU = "neoverse-n1"


def missing_part() -> str:
    """Return why nothing can be emulated, or the empty string."""
    if not (FOLDER / ".ready").exists():
        return "no emulated aarch64 machine: make aarch64 downloads one (Debian's packages and QEMU)"
    done = subprocess.run([EMULATOR, "--version"], capture_output=True, check=False)
    return "" if done.returncode == 0 else f"{EMULATOR} does not run here"


@dataclass(frozen=True)
class EmulatedMachine:
    """An aarch64 machine with Python, NumPy and intarsia-runtime.

    Attributes:
        packages: Folder with the unpacked wheel of the runtime.
    """

    packages: Path

    @classmethod
    def of_wheel(cls, wheel: Path, folder: Path) -> EmulatedMachine:
        """Unpack a wheel into a folder."""
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
        return cls(folder)

    def run(self, *arguments: object, seconds: float = 900) -> subprocess.CompletedProcess[str]:
        """Run Python with arguments."""
        path = f"PYTHONPATH={FOLDER / 'packages'}:{self.packages}"
        emulator = [EMULATOR, "-cpu", CPU, "-L", FOLDER / "root", "-E", path]
        command = [*emulator, FOLDER / "root/usr/bin/python3.11", *arguments]
        return subprocess.run(
            [str(part) for part in command], capture_output=True, text=True, check=False, timeout=seconds
        )
