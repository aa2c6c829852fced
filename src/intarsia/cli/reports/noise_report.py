"""Report of the noise self-test of the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from intarsia.cli.reports.report import Block, Report
from intarsia.cli.reports.table import Table
from intarsia.support.units import duration_text

if TYPE_CHECKING:
    from intarsia.measure.timing.noise import KernelNoise, NoiseReport
    from intarsia.measure.timing.system_load import SystemLoad

HEADERS = ("kernel", "median", "MAD", "p95", "drift", "samples")
NUMERIC = frozenset({1, 2, 3, 4, 5})
UNKNOWN = "unknown"


def noise_report(measured: NoiseReport) -> Report:
    """Return the report: kernels, load, and the verdict with its remedies."""
    from intarsia.measure.timing.noise_verdict import noise_findings, noise_verdict

    verdict, findings = noise_verdict(measured), noise_findings(measured)
    document = {
        "verdict": verdict.value,
        "meaning": verdict.meaning,
        "findings": [
            {"verdict": finding.verdict.value, "problem": finding.problem, "help": finding.help}
            for finding in findings
        ],
        "kernels": [_kernel_record(kernel) for kernel in measured.kernels],
        "steal": measured.load.steal,
        "load_average": measured.load.load_average,
        "cores": measured.load.cores,
        "governor": measured.load.governor or None,
    }
    blocks: list[Block] = [Table(HEADERS, tuple(map(_kernel_row, measured.kernels)), NUMERIC)]
    blocks += [_load_table(measured.load), f"{verdict}: {verdict.meaning}"]
    for finding in findings:
        blocks += [f"  {finding.verdict}: {finding.problem}", f"    help: {finding.help}"]
    return Report(document, tuple(blocks))


def _kernel_record(kernel: KernelNoise) -> dict[str, object]:
    return {
        "name": kernel.name,
        "median_seconds": kernel.median,
        "mad": kernel.mad,
        "p95": kernel.tail,
        "drift": kernel.drift,
        "samples": len(kernel.samples),
    }


def _kernel_row(kernel: KernelNoise) -> tuple[str, ...]:
    return (
        kernel.name,
        duration_text(kernel.median),
        f"{kernel.mad:.1%}",
        f"{kernel.tail:+.1%}",
        f"{kernel.drift:+.1%}",
        str(len(kernel.samples)),
    )


def _load_table(load: SystemLoad) -> Table:
    average = UNKNOWN if load.load_average is None else f"{load.load_average:.2f} on {load.cores} cores"
    rows = (
        ("stolen time", UNKNOWN if load.steal is None else f"{load.steal:.1%}"),
        ("load average", average),
        ("frequency governor", load.governor or UNKNOWN),
    )
    return Table(("system", ""), rows)
