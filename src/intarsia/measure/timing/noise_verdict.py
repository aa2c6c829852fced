"""Whether a machine is fit for measuring, and what to do where it is not."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from intarsia.measure.timing.noise import KernelNoise, NoiseReport
from intarsia.measure.timing.system_load import SystemLoad


class NoiseVerdict(StrEnum):
    """How fit for measuring a machine is."""

    QUIET = "quiet"
    USABLE = "usable"
    NOISY = "noisy"

    @property
    def meaning(self) -> str:
        """What it means for measurements."""
        return {
            NoiseVerdict.QUIET: "differences of 1 % show after few repeats",
            NoiseVerdict.USABLE: "differences of 5 % show, smaller ones need many repeats",
            NoiseVerdict.NOISY: "do not trust a comparison made now",
        }[self]


@dataclass(frozen=True, slots=True)
class Limit:
    """Up to where a figure is quiet, and up to where it is usable."""

    quiet: float
    usable: float

    def judge(self, value: float) -> NoiseVerdict:
        """The verdict on a value; values at a limit are within it."""
        if value <= self.quiet:
            return NoiseVerdict.QUIET
        return NoiseVerdict.USABLE if value <= self.usable else NoiseVerdict.NOISY


MAD_LIMIT = Limit(0.01, 0.03)
TAIL_LIMIT = Limit(0.05, 0.2)
DRIFT_LIMIT = Limit(0.02, 0.05)
STEAL_LIMIT = Limit(0.005, 0.03)
LOAD_LIMIT = Limit(0.1, 0.5)
"""Limit of the load average divided by the number of cores."""

STEADY_GOVERNORS = frozenset({"", "performance"})


@dataclass(frozen=True, slots=True)
class NoiseFinding:
    """One thing that is not quiet.

    Attributes:
        verdict: USABLE or NOISY.
        problem: Description with its figure.
        help: Remedy.
    """

    verdict: NoiseVerdict
    problem: str
    help: str


def noise_findings(report: NoiseReport) -> tuple[NoiseFinding, ...]:
    """Everything that is not quiet, the worst first."""
    findings = [finding for kernel in report.kernels for finding in _of_kernel(kernel)] + _of_load(
        report.load
    )
    loud = [finding for finding in findings if finding.verdict is not NoiseVerdict.QUIET]
    return tuple(sorted(loud, key=lambda finding: finding.verdict is not NoiseVerdict.NOISY))


def noise_verdict(report: NoiseReport) -> NoiseVerdict:
    """The worst of the findings; quiet if there is none."""
    findings = noise_findings(report)
    return findings[0].verdict if findings else NoiseVerdict.QUIET


def _of_kernel(kernel: KernelNoise) -> list[NoiseFinding]:
    drifts = f"the {kernel.name} kernel became {abs(kernel.drift):.1%}"
    return [
        NoiseFinding(
            MAD_LIMIT.judge(kernel.mad),
            f"half of the times of the {kernel.name} kernel are more than {kernel.mad:.1%} off",
            "stop what else runs; pin the process to cores of its own (taskset)",
        ),
        NoiseFinding(
            TAIL_LIMIT.judge(kernel.tail),
            f"one time in twenty of the {kernel.name} kernel is at least {kernel.tail:.1%} too long",
            "look for what runs at intervals (top), and give comparisons more rounds",
        ),
        NoiseFinding(
            DRIFT_LIMIT.judge(abs(kernel.drift)),
            f"{drifts} {'slower' if kernel.drift > 0 else 'faster'} during the test",
            "wait until the machine is as warm and as busy as it stays; compare interleaved only",
        ),
    ]


def _of_load(load: SystemLoad) -> list[NoiseFinding]:
    findings = []
    if load.steal is not None:
        problem = f"{load.steal:.1%} of the time of the cores went to other virtual machines"
        help_text = "measure on a machine with cores of its own"
        findings.append(NoiseFinding(STEAL_LIMIT.judge(load.steal), problem, help_text))
    if load.load_average is not None:
        problem = f"the load was {load.load_average:.2f} on {load.cores} cores before the test"
        help_text = "stop what else runs, or wait a minute if it has just ended"
        findings.append(NoiseFinding(LOAD_LIMIT.judge(load.load_average / load.cores), problem, help_text))
    if load.governor not in STEADY_GOVERNORS:
        problem = f"the frequency governor is {load.governor}"
        help_text = "cpupower frequency-set --governor performance"
        findings.append(NoiseFinding(NoiseVerdict.USABLE, problem, help_text))
    return findings
