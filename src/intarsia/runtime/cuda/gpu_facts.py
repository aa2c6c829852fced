"""The GPUs of this machine: name, size, clocks, and driver; they are part of its fingerprint.

They are read in another process: once a process has used a driver, its forked children cannot any more.
`python -m intarsia.runtime.cuda.gpu_facts` prints them as JSON.
"""

from __future__ import annotations

import ctypes
import json
import re
import subprocess
import sys
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Final

from intarsia.runtime.availability import Unavailable
from intarsia.runtime.cuda.driver import CudaDriver, library_name
from intarsia.support.environment import copy_environment
from intarsia.support.errors import IntarsiaError, MissingToolchainError

_MAJOR, _MINOR, _MULTIPROCESSORS, _CLOCK, _MEMORY_CLOCK = 75, 76, 16, 13, 36
"""Numbers of device attributes; clocks are the highest ones, in kHz."""
_NAME_SIZE: Final = 256
_VERSION_FILE: Final = Path("/proc/driver/nvidia/version")
_VERSION: Final = re.compile(r"\s(\d{3,}\.\d+(?:\.\d+)?)\s")
_SECONDS: Final = 60
"""Time limit of the process that reads the facts; a GPU that sleeps takes some seconds to answer."""


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """A GPU of this machine.

    Attributes:
        name: Its name.
        capability: Compute capability, such as (9, 0).
        multiprocessors: Number of multiprocessors.
        memory_bytes: Size of its memory.
        clock_khz: Highest clock.
        memory_clock_khz: Highest clock of its memory.
        driver: Version of CUDA that the driver supports, and its own: "CUDA 13.0, driver 580.65.06".
    """

    name: str
    capability: tuple[int, int]
    multiprocessors: int
    memory_bytes: int
    clock_khz: int
    memory_clock_khz: int
    driver: str

    def __str__(self) -> str:
        """One line with all facts."""
        major, minor = self.capability
        return (
            f"{self.name}, compute capability {major}.{minor}, {self.multiprocessors} multiprocessors at "
            f"{self.clock_khz / 1000:.0f} MHz, {self.memory_bytes / (1 << 30):.1f} GiB at "
            f"{self.memory_clock_khz / 1000:.0f} MHz, {self.driver}"
        )


@dataclass(frozen=True, slots=True)
class Gpus:
    """The GPUs of this machine, or why none can be used.

    Attributes:
        facts: The GPUs, by their numbers.
        unavailable: Why there are none; None if there are some.
    """

    facts: tuple[GpuFacts, ...] = ()
    unavailable: Unavailable | None = None


def gpus_here() -> Gpus:
    """Return the GPUs of this machine; they are read once in a process, and not at all without a driver."""
    return _gpus_of(library_name())


@cache
def _gpus_of(library: str) -> Gpus:
    try:
        ctypes.CDLL(library)  # which initialises nothing
        if not sys.executable:  # Python is embedded in another program
            return Gpus(read_facts(CudaDriver.load()))
    except OSError as error:
        return _none(
            f"there is no NVIDIA driver here: {error}", "use a machine with an NVIDIA GPU and its driver"
        )
    except IntarsiaError as error:
        return _none(error.problem, error.help)
    try:
        child = subprocess.run(  # noqa: S603  # this interpreter, on a module of this package
            [sys.executable, "-m", __name__],
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            env=copy_environment(),
        )
    except subprocess.TimeoutExpired:
        return _none(f"the NVIDIA driver did not answer within {_SECONDS} s", "check nvidia-smi")
    if child.returncode:
        last = child.stderr.decode(errors="replace").strip().splitlines()[-1:]
        return _none(f"the NVIDIA driver failed: {(last or ['it crashed'])[0]}", "check nvidia-smi")
    record = json.loads(child.stdout)
    if "problem" in record:
        return _none(record["problem"], record["help"])
    return Gpus(
        tuple(GpuFacts(**{**item, "capability": tuple(item["capability"])}) for item in record["gpus"])
    )


def _none(reason: str, remedy: str) -> Gpus:
    return Gpus(unavailable=Unavailable(reason, remedy))


def read_facts(driver: CudaDriver, version_file: Path = _VERSION_FILE) -> tuple[GpuFacts, ...]:
    """Read the facts of all GPUs in this process.

    Args:
        driver: The driver.
        version_file: File in which the kernel module says its version.

    Raises:
        ExecutionError: The driver failed.
    """
    version = ctypes.c_int()
    driver.call("cuDriverGetVersion", ctypes.byref(version))
    major, minor = version.value // 1000, version.value % 1000 // 10
    text = f"CUDA {major}.{minor}" + _module_version(version_file)
    return tuple(_facts_of(driver, number, text) for number in range(driver.device_count()))


def _facts_of(driver: CudaDriver, number: int, version: str) -> GpuFacts:
    device, size, name = ctypes.c_int(), ctypes.c_size_t(), ctypes.create_string_buffer(_NAME_SIZE)
    driver.call("cuDeviceGet", ctypes.byref(device), number)
    driver.call("cuDeviceTotalMem_v2", ctypes.byref(size), device)
    driver.call("cuDeviceGetName", name, _NAME_SIZE, device)

    def attribute(which: int) -> int:
        value = ctypes.c_int()
        driver.call("cuDeviceGetAttribute", ctypes.byref(value), which, device)
        return value.value

    return GpuFacts(
        name.value.decode(),
        (attribute(_MAJOR), attribute(_MINOR)),
        attribute(_MULTIPROCESSORS),
        size.value,
        attribute(_CLOCK),
        attribute(_MEMORY_CLOCK),
        version,
    )


def _module_version(file: Path) -> str:
    """Return the version of the kernel module as the end of a text; "" if it is not to be read."""
    try:
        match = _VERSION.search(file.read_text(errors="replace"))
    except OSError:
        return ""
    return f", driver {match[1]}" if match else ""


def _print_facts() -> None:
    try:
        record: dict[str, object] = {"gpus": [asdict(facts) for facts in read_facts(CudaDriver.load())]}
    except MissingToolchainError as error:
        record = {"problem": error.problem, "help": error.help}
    sys.stdout.write(json.dumps(record))


if __name__ == "__main__":
    _print_facts()
