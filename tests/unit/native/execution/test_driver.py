"""The driver: one object code for an architecture, checked when it is loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.native_ir import object_code

from intarsia.native.execution import driver
from intarsia.native.execution.driver import driver_object_code, process_driver
from intarsia.native.execution.driver_text import driver_identity, driver_text
from intarsia.native.machine.isa import host_architecture
from intarsia.native.object_code.elf_file import read_object_file
from intarsia.support.errors import ArtifactError


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_object_code_for_every_architecture(architecture: str) -> None:
    data = driver_object_code(architecture)
    assert read_object_file(data).architecture == architecture
    assert driver_identity(architecture) in data


def test_one_driver_in_a_process() -> None:
    assert process_driver() is process_driver()
    assert process_driver(b"not looked at") is process_driver()


def test_other_code_is_refused() -> None:
    with pytest.raises(ArtifactError, match="is not the driver of native kernels"):
        driver._load(object_code("add"))


def test_driver_of_another_version_is_refused() -> None:
    identity = driver_identity(host_architecture())
    assert identity.decode() in driver_text(host_architecture())
    other = driver_object_code().replace(identity, bytes(reversed(identity)))
    with pytest.raises(ArtifactError, match="belongs to another version of Intarsia"):
        driver._load(other)


def test_everything_runs_without_llvm(tmp_path: Path) -> None:
    (tmp_path / "driver.o").write_bytes(driver_object_code())
    (tmp_path / "regions.o").write_bytes(object_code("regions"))
    script = f"""
import sys
sys.modules["llvmlite"] = None
from pathlib import Path
import numpy as np
from intarsia.native.execution.driver import process_driver
from intarsia.native.execution.native_function import NativeFunction
from intarsia.native.execution.thread_pool import ThreadPool
from tests.native_ir import PARAMETERS
folder = Path({str(tmp_path)!r})
pool = ThreadPool(2, process_driver((folder / "driver.o").read_bytes()))
regions = NativeFunction.load((folder / "regions.o").read_bytes(), "regions", PARAMETERS["regions"])
counts = np.zeros(1000, np.int32)
regions(counts, np.array([1000, 7]), pool=pool)
assert (counts == 7).all()
"""
    subprocess.run([sys.executable, "-c", script], check=True)
