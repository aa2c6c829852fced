"""Exact texts of `intarsia doctor --noise`."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from intarsia.cli.exit import run_command_line
from intarsia.measure.timing import host_lock, noise
from intarsia.measure.timing.noise import KernelNoise, NoiseReport
from intarsia.measure.timing.system_load import SystemLoad

QUIET = NoiseReport(
    (KernelNoise("compute", (5e-4,) * 300), KernelNoise("memory", (8e-3, 8.1e-3, 8.05e-3) * 100)),
    SystemLoad(cores=8, steal=0.0, load_average=0.12, governor="performance"),
)
NOISY = NoiseReport(
    (KernelNoise("compute", (5e-4, 7e-4) * 21), KernelNoise("memory", (8e-3,) * 42)),
    SystemLoad(cores=2, steal=0.021, load_average=1.5, governor="powersave"),
)
UNKNOWN = NoiseReport((KernelNoise("compute", (5e-4,) * 40),), SystemLoad(2, None, None, ""))

QUIET_TEXT = """\
kernel    median   MAD    p95  drift  samples
compute   500 us  0.0%  +0.0%  +0.0%      300
memory   8.05 ms  0.6%  +0.6%  +0.0%      300

system
stolen time         0.0%
load average        0.12 on 8 cores
frequency governor  performance

quiet: differences of 1 % show after few repeats
"""
NOISY_TEXT = """\
kernel    median    MAD     p95  drift  samples
compute   600 us  16.7%  +16.7%  +0.0%       42
memory   8.00 ms   0.0%   +0.0%  +0.0%       42

system
stolen time         2.1%
load average        1.50 on 2 cores
frequency governor  powersave

noisy: do not trust a comparison made now
  noisy: half of the times of the compute kernel are more than 16.7% off
    help: stop what else runs; pin the process to cores of its own (taskset)
  noisy: the load was 1.50 on 2 cores before the test
    help: stop what else runs, or wait a minute if it has just ended
  usable: one time in twenty of the compute kernel is at least 16.7% too long
    help: look for what runs at intervals (top), and give comparisons more rounds
  usable: 2.1% of the time of the cores went to other virtual machines
    help: measure on a machine with cores of its own
  usable: the frequency governor is powersave
    help: cpupower frequency-set --governor performance
"""
UNKNOWN_TEXT = """\
kernel   median   MAD    p95  drift  samples
compute  500 us  0.0%  +0.0%  +0.0%       40

system
stolen time         unknown
load average        unknown
frequency governor  unknown

quiet: differences of 1 % show after few repeats
"""


def shown(found: NoiseReport, monkeypatch: pytest.MonkeyPatch, folder: Path, *flags: str) -> str:
    monkeypatch.setattr(noise, "noise_self_test", lambda: found)
    monkeypatch.setattr(host_lock, "host_lock_path", lambda: folder / "own" / "timing.lock")
    out, err = io.StringIO(), io.StringIO()
    assert run_command_line(["doctor", "--noise", *flags], out, err) == 0
    assert err.getvalue() == ""
    return out.getvalue()


@pytest.mark.parametrize(
    ("found", "text"), [(QUIET, QUIET_TEXT), (NOISY, NOISY_TEXT), (UNKNOWN, UNKNOWN_TEXT)]
)
def test_the_text(found: NoiseReport, text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert shown(found, monkeypatch, tmp_path) == text


def test_the_document(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    document = json.loads(shown(NOISY, monkeypatch, tmp_path, "--json"))
    assert document["verdict"] == "noisy"
    assert document["findings"][0] == {
        "verdict": "noisy",
        "problem": "half of the times of the compute kernel are more than 16.7% off",
        "help": "stop what else runs; pin the process to cores of its own (taskset)",
    }
    assert document["kernels"][1] == {
        "name": "memory",
        "median_seconds": 0.008,
        "mad": 0.0,
        "p95": 0.0,
        "drift": 0.0,
        "samples": 42,
    }
    assert (document["steal"], document["load_average"], document["cores"]) == (0.021, 1.5, 2)
    assert document["governor"] == "powersave"
    assert json.loads(shown(UNKNOWN, monkeypatch, tmp_path, "--json"))["governor"] is None
