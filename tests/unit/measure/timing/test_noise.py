from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fake_clock import FakeClock

from intarsia.measure.timing.noise import (
    SELF_TEST,
    KernelNoise,
    NoiseReport,
    noise_self_test,
    reference_kernels,
)
from intarsia.measure.timing.noise_verdict import NoiseVerdict, noise_findings, noise_verdict
from intarsia.measure.timing.system_load import (
    CpuTimes,
    LoadWatch,
    SystemLoad,
    read_cpu_times,
    read_load_average,
)
from intarsia.target.cpu import usable_cores

MS = 1_000_000
STILL = SystemLoad(cores=4, steal=0.0, load_average=0.0, governor="performance")
STEADY = KernelNoise("compute", (1.0,) * 40)


def machine(root: Path, stolen: int = 0, total: int = 10_000, load: str = "0.08") -> Path:
    """A folder with the files of a machine."""
    (root / "proc").mkdir(exist_ok=True)
    rest = total - stolen
    (root / "proc/stat").write_text(f"cpu  {rest} 0 0 0 0 0 0 {stolen} 77 0\ncpu0 1 0 0 0 0 0 0 0 0 0\n")
    (root / "proc/loadavg").write_text(f"{load} 0.50 0.90 1/100 4242\n")
    folder = root / "sys/devices/system/cpu/cpu0/cpufreq"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scaling_governor").write_text("powersave\n")
    return root


def test_the_load_between_begin_and_end(tmp_path: Path) -> None:
    watch = LoadWatch.begin(machine(tmp_path, stolen=100, total=10_000, load="1.25"))
    machine(tmp_path, stolen=130, total=11_000, load="7.00")
    assert watch.end() == SystemLoad(usable_cores(tmp_path), 0.03, 1.25, "powersave")


def test_a_machine_that_says_nothing(tmp_path: Path) -> None:
    found = LoadWatch.begin(tmp_path).end()
    assert found == SystemLoad(usable_cores(tmp_path), None, None, "")


@pytest.mark.parametrize("text", ["", "cpu 1 2 3\n", "cpu 1 2 3 4 5 6 7 x\n", "intr 1 2 3 4 5 6 7 8\n"])
def test_files_in_another_form(tmp_path: Path, text: str) -> None:
    machine(tmp_path)
    (tmp_path / "proc/stat").write_text(text)
    (tmp_path / "proc/loadavg").write_text(text[:3])
    assert read_cpu_times(tmp_path) is None
    assert read_load_average(tmp_path) is None


def test_the_time_of_guests_is_not_counted_twice(tmp_path: Path) -> None:
    assert read_cpu_times(machine(tmp_path, stolen=5)) == CpuTimes(10_000, 5)


def test_the_kernels_take_turns_within_the_budget(tmp_path: Path) -> None:
    clock, ran = FakeClock(), []

    def kernel(name: str, cost: int) -> Callable[[], None]:
        def function() -> None:
            ran.append(name)
            clock.advance(cost)

        return function

    kernels = {"compute": kernel("compute", 10 * MS), "memory": kernel("memory", 40 * MS)}
    found = noise_self_test(kernels, replace(SELF_TEST, warmup_seconds=0.0), clock, machine(tmp_path))
    assert [kernel.name for kernel in found.kernels] == ["compute", "memory"]
    assert found.kernels[0].samples == (0.01,) * 98  # 150 ms of warm-up, 50 ms a round, 5 s
    assert found.kernels[1].samples == (0.04,) * 98
    assert clock() == 5050 * MS
    assert ran[6:10] == ["compute", "memory"] * 2
    assert found.load == SystemLoad(usable_cores(tmp_path), 0.0, 0.08, "powersave")


def test_the_reference_kernels_compute() -> None:
    kernels = reference_kernels()
    assert list(kernels) == ["compute", "memory"]
    for kernel in kernels.values():
        found = kernel()
        assert isinstance(found, np.ndarray)
        assert found.min() > 0 or found.dtype == np.float32
        assert found is kernel()  # nothing is allocated while it is timed


def test_statistics_of_a_kernel() -> None:
    kernel = KernelNoise("compute", (1.0, 1.0, 1.0, 1.1, 1.1, 1.1, 1.2, 1.2, 1.2))
    assert kernel.median == 1.1
    assert kernel.mad == pytest.approx(0.1 / 1.1)
    assert kernel.tail == pytest.approx(1.2 / 1.1 - 1)
    assert kernel.drift == pytest.approx(0.2)


@given(st.lists(st.floats(1e-6, 10.0), min_size=2, max_size=60), st.sampled_from([0.5, 2.0, 1024.0]))
def test_units_do_not_matter(samples: list[float], unit: float) -> None:
    one = KernelNoise("a", tuple(samples))
    other = KernelNoise("a", tuple(sample * unit for sample in samples))
    assert (one.mad, one.tail, one.drift) == pytest.approx((other.mad, other.tail, other.drift))
    assert one.mad >= 0


def test_a_quiet_machine() -> None:
    report = NoiseReport((STEADY,), STILL)
    assert noise_findings(report) == ()
    assert noise_verdict(report) is NoiseVerdict.QUIET


def test_what_cannot_be_read_is_no_finding() -> None:
    assert noise_findings(NoiseReport((STEADY,), SystemLoad(4, None, None, ""))) == ()


@pytest.mark.parametrize(
    ("load", "verdict", "problem"),
    [
        (replace(STILL, steal=0.005), NoiseVerdict.QUIET, None),
        (replace(STILL, steal=0.02), NoiseVerdict.USABLE, "2.0% of the time of the cores went to other"),
        (replace(STILL, steal=0.2), NoiseVerdict.NOISY, "20.0% of the time of the cores went to other"),
        (replace(STILL, load_average=0.4), NoiseVerdict.QUIET, None),
        (replace(STILL, load_average=1.0), NoiseVerdict.USABLE, "the load was 1.00 on 4 cores before"),
        (replace(STILL, load_average=3.0), NoiseVerdict.NOISY, "the load was 3.00 on 4 cores before"),
        (replace(STILL, governor="powersave"), NoiseVerdict.USABLE, "the frequency governor is powersave"),
    ],
)
def test_the_load_decides(load: SystemLoad, verdict: NoiseVerdict, problem: str | None) -> None:
    report = NoiseReport((STEADY,), load)
    assert noise_verdict(report) is verdict
    assert [each.problem.startswith(problem or "-") for each in noise_findings(report)] == [True] * bool(
        problem
    )


@pytest.mark.parametrize(
    ("samples", "verdict", "problem"),
    [
        (
            (1.0, 1.02) * 21,
            NoiseVerdict.QUIET,
            None,
        ),
        (
            (1.0, 1.04) * 21,
            NoiseVerdict.USABLE,
            "half of the times of the compute kernel are more than 2.0% off",
        ),
        (
            (1.0, 1.5) * 21,
            NoiseVerdict.NOISY,
            "half of the times of the compute kernel are more than 20.0% off",
        ),
        (
            (*(1.0,) * 9, 1.1) * 4,
            NoiseVerdict.USABLE,
            "one time in twenty of the compute kernel is at least 10.0% too long",
        ),
        (
            (*(1.0,) * 9, 2.0) * 4,
            NoiseVerdict.NOISY,
            "one time in twenty of the compute kernel is at least 100.0% too long",
        ),
        (
            (*(1.0,) * 30, *(1.03,) * 20),
            NoiseVerdict.USABLE,
            "the compute kernel became 3.0% slower during the test",
        ),
        (
            (*(1.0,) * 20, *(0.9,) * 40),
            NoiseVerdict.NOISY,
            "the compute kernel became 10.0% faster during the test",
        ),
    ],
)
def test_the_kernels_decide(samples: tuple[float, ...], verdict: NoiseVerdict, problem: str | None) -> None:
    report = NoiseReport((KernelNoise("compute", samples),), STILL)
    assert noise_verdict(report) is verdict
    worst = [each.problem for each in noise_findings(report) if each.verdict is verdict]
    assert (problem in worst) if problem else worst == []


def test_the_worst_comes_first() -> None:
    report = NoiseReport((KernelNoise("compute", (1.0, 1.04) * 21),), replace(STILL, steal=0.5))
    assert [each.verdict for each in noise_findings(report)] == [NoiseVerdict.NOISY, NoiseVerdict.USABLE]
