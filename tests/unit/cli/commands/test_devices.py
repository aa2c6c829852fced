"""`intarsia devices`: what it shows with fake GPUs and without any."""

from __future__ import annotations

import io
import json

import pytest
from tests.gpu_on_cpu.fake_machine import machine_with_gpus

from intarsia.cli.exit import run_command_line


def shown(*arguments: str) -> str:
    out, err = io.StringIO(), io.StringIO()
    assert run_command_line(arguments, out, err) == 0, err.getvalue()
    return out.getvalue()


def test_gpus_and_what_works_on_them() -> None:
    with machine_with_gpus():
        document = json.loads(shown("devices", "--json"))
        text = shown("devices")
        doctor = shown("doctor")
    facts = (
        "Fake GPU 0, compute capability 8.0, 4 multiprocessors at 1500 MHz, 8.0 GiB at 2000 MHz, CUDA 13.0"
    )
    cpu, gpu = document["devices"]
    assert (cpu["name"], gpu["name"], gpu["usable"]) == ("cpu:0", "cuda:0", True)
    assert gpu["description"].startswith(facts)
    assert facts in text
    assert facts in doctor
    states = {(row["device"], row["name"]): row for row in document["toolchains"]}
    assert states["cuda", "native"]["usable"]
    assert states["cuda", "native"]["version"] == states["cpu", "native"]["version"]
    assert states["cuda", "reference"] == {
        "name": "reference",
        "device": "cuda",
        "usable": False,
        "version": None,
        "reason": "reference makes kernels for the CPU only",
        "help": "",
    }


def test_without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTARSIA_LIBCUDA", "libnothing.so.1")
    document = json.loads(shown("devices", "--json"))
    assert document["devices"][1]["name"] == "cuda"
    assert "there is no NVIDIA driver here: libnothing.so.1" in document["devices"][1]["reason"]
    states = {(row["device"], row["name"]): row for row in document["toolchains"]}
    assert "there is no NVIDIA driver here" in states["cuda", "native"]["reason"]
    assert states["cpu", "native"]["usable"]
    assert "GPUs              none: there is no NVIDIA driver here" in shown("doctor")


def test_a_target_without_a_device_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTARSIA_LIBCUDA", "libnothing.so.1")
    out, err = io.StringIO(), io.StringIO()
    arguments = ["tune", "zoo:mnist", "--target", "cuda -toolchain=native", "--budget", "1s"]
    assert run_command_line(arguments, out, err) == 2
    assert "toolchain 'native' is not usable on cuda here: there is no NVIDIA driver here" in err.getvalue()
