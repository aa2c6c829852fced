"""Set up a folder in which Python runs as on a Neoverse N1: Debian's arm64 packages, NumPy's wheel, and QEMU.

Nothing is installed: packages are downloaded and unpacked, with lists of packages that belong to the folder.

Usage: python -m tests.aarch64.prepare FOLDER
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Final

PACKAGES: Final = (
    *("libc6", "libgcc-s1", "libstdc++6", "zlib1g", "libexpat1", "libffi8", "libssl3", "libbz2-1.0"),
    *("liblzma5", "libuuid1", "python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib"),
)
WHEELS: Final = ("numpy", "ml_dtypes")
PLATFORMS: Final = ("manylinux_2_28_aarch64", "manylinux_2_27_aarch64", "manylinux2014_aarch64")

CPUINFO: Final = """\
processor\t: 0
BogoMIPS\t: 243.75
Features\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop \
asimddp ssbs
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x3
CPU part\t: 0xd0c
CPU revision\t: 1

"""
"""/proc/cpuinfo of a Neoverse N1: QEMU shows programs the file of the machine that it runs on, unless there
is one below its root."""


def unpack_debian(folder: Path, architecture: str, packages: tuple[str, ...], destination: Path) -> None:
    """Download Debian packages of an architecture and unpack them."""
    state = folder / f"apt-{architecture}"
    for part in ("lists/partial", "cache/archives/partial", "debs"):
        (state / part).mkdir(parents=True, exist_ok=True)
    (state / "status").touch()
    settings = {
        "APT::Architecture": architecture,
        "APT::Architectures": architecture,
        "APT::Sandbox::User": "root",
        "Dir::State": state,
        "Dir::State::lists": state / "lists",
        "Dir::State::status": state / "status",
        "Dir::Cache": state / "cache",
    }
    apt = ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in settings.items())]
    subprocess.run([*apt, "update"], check=True)
    subprocess.run([*apt, "download", *packages], check=True, cwd=state / "debs")
    for package in sorted((state / "debs").glob("*.deb")):
        subprocess.run(["dpkg-deb", "--extract", package, destination], check=True)
    shutil.rmtree(state)


def unpack_wheels(folder: Path, destination: Path) -> None:
    """Download wheels for aarch64 and unpack them."""
    platforms = [argument for platform in PLATFORMS for argument in ("--platform", platform)]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    command += [*platforms, "--python-version", "3.11", "--dest", str(folder / "wheels"), *WHEELS]
    subprocess.run(command, check=True)
    for wheel in (folder / "wheels").glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(destination)


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    root = folder / "root"
    unpack_debian(folder, "arm64", PACKAGES, root)
    unpack_debian(folder, "amd64", ("qemu-user-static",), folder / "qemu")
    for emulator in (folder / "qemu" / "usr" / "bin").iterdir():
        if emulator.name != "qemu-aarch64-static":  # of 30 architectures, 300 MB
            emulator.unlink()
    unpack_wheels(folder, folder / "packages")
    (root / "proc").mkdir(exist_ok=True)
    (root / "proc" / "cpuinfo").write_text(CPUINFO)


if __name__ == "__main__":
    main()
