"""The facts about GPUs: read in another process, from a fake driver, a missing and a broken one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.gpu_on_cpu.cpu_kernels import compile_c
from tests.gpu_on_cpu.fake_gpu import fake_driver, fake_library, set_device_count

from intarsia.runtime.availability import Unavailable
from intarsia.runtime.cuda.gpu_facts import GpuFacts, gpus_here, read_facts
from intarsia.target import Host
from intarsia.toolchain.this_host import this_host

MODULE = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\nGCC version: 12\n"
)


def test_the_facts_of_each_gpu(tmp_path: Path) -> None:
    (tmp_path / "version").write_text(MODULE)
    set_device_count(2)
    try:
        first, second = read_facts(fake_driver(), tmp_path / "version")
    finally:
        set_device_count(1)
    driver = "CUDA 13.0, driver 580.65.06"
    assert first == GpuFacts("Fake GPU 0", (8, 0), 4, 8 << 30, 1_500_000, 2_000_000, driver)
    assert second.name == "Fake GPU 1"
    assert str(first) == (
        "Fake GPU 0, compute capability 8.0, 4 multiprocessors at 1500 MHz, 8.0 GiB at 2000 MHz, " + driver
    )
    assert read_facts(fake_driver(), tmp_path / "nothing")[0].driver == "CUDA 13.0"


def test_they_are_read_in_another_process_and_are_part_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTARSIA_LIBCUDA", "libnothing.so.1")
    without = this_host()
    monkeypatch.setenv("INTARSIA_LIBCUDA", str(fake_library()))
    (facts,) = gpus_here().facts
    assert facts == read_facts(fake_driver())[0]
    host = this_host()
    assert host.gpus == (str(facts),)
    assert host.digest != without.digest
    assert Host.from_json(host.to_json()) == host
    assert f"GPU 0: {facts} here, none there" in host.differences(without)


def test_a_missing_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTARSIA_LIBCUDA", "libnothing.so.1")
    found = gpus_here()
    assert found.facts == ()
    assert isinstance(found.unavailable, Unavailable)
    assert found.unavailable.reason.startswith("there is no NVIDIA driver here: libnothing.so.1")


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("int cuInit(unsigned flags) { return 0; }", "the NVIDIA driver here is too old: it has no cu"),
        (
            "__attribute__((constructor)) static void end(void) { extern void _exit(int); _exit(7); }",
            "it crashed",
        ),
    ],
)
def test_a_broken_driver(code: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "broken.c"
    source.write_text(code)
    library = compile_c(source)
    monkeypatch.setenv("INTARSIA_LIBCUDA", str(library))
    if "constructor" in code:  # which must not end this process, too
        monkeypatch.setattr("intarsia.runtime.cuda.gpu_facts.ctypes.CDLL", lambda name: None)
    found = gpus_here().unavailable
    assert found is not None
    assert reason in found.reason
