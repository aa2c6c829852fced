"""`intarsia doctor`: the machine, its toolchains, and what is missing."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Final

import typer

from intarsia.cli.reports.machine_report import calibration_report, machine_lines, machine_record
from intarsia.cli.reports.report import Block, Report
from intarsia.cli.reports.table import Table
from intarsia.support.errors import UsageError
from intarsia.support.units import cache_text
from intarsia.target.reference import REFERENCE

if TYPE_CHECKING:
    from intarsia.cli.console.console import Console
    from intarsia.runtime.cuda.gpu_facts import Gpus
    from intarsia.target import Host
    from intarsia.toolchain import ToolchainStatus

MOST_SECONDS: Final = 20.0
"""Seconds that a calibration takes at most, with the compilation of its probes."""
NO_ENGINE: Final = (
    "no inference engine works here, only the slow reference: pip install 'intarsia[cpu]' installs three"
)


def doctor(
    context: typer.Context,
    *,
    noise: Annotated[
        bool,
        typer.Option(
            "--noise", help="Test for five seconds whether the machine is quiet enough for measurements."
        ),
    ] = False,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate",
            help="Measure the machine model in under 20 seconds, and store it: latency of multiply-adds, "
            "bandwidths of caches and memory, barriers.",
        ),
    ] = False,
) -> Report:
    """Show the machine and its toolchains.

    Prints the CPU and GPUs, each toolchain with its version or its problem, and the use of threads. What
    works on GPUs is shown by: intarsia devices
    """
    if noise and calibrate:
        raise UsageError("--noise and --calibrate are two measurements", help="run one after the other")
    if calibrate:
        return _calibrated(context.obj)
    if noise:
        from intarsia.cli.reports.noise_report import noise_report
        from intarsia.measure.timing.host_lock import exclusive_host
        from intarsia.measure.timing.noise import noise_self_test

        with exclusive_host(on_wait=context.obj.note):
            return noise_report(noise_self_test())
    from intarsia.runtime.cuda.gpu_facts import gpus_here
    from intarsia.support.version import VERSION
    from intarsia.target.machine_file import machine_file
    from intarsia.toolchain import installed_toolchains
    from intarsia.toolchain.this_host import this_host

    host, statuses, machine = this_host(), installed_toolchains(), machine_file()
    engines = [status.name for status in statuses if status.is_usable and status.name != REFERENCE]
    document = {
        "intarsia": VERSION,
        "host": host.to_json(),
        "gpus": [str(facts) for facts in gpus_here().facts],
        "toolchains": [_record(status) for status in statuses],
        "engines": engines,
        "machine_model": machine_record(machine),
    }
    verdict = f"ready: {', '.join(engines)}" if engines else NO_ENGINE
    blocks: tuple[Block, ...] = (
        _machine_table(host, VERSION, gpus_here()),
        _toolchain_table(statuses),
        *_thread_lines(host),
        *machine_lines(machine),
        verdict,
    )
    return Report(document, blocks)


def _calibrated(console: Console) -> Report:
    """Measure the machine model and store it; an interrupted measurement leaves the one before."""
    from intarsia.measure.timing.host_lock import exclusive_host
    from intarsia.measure.timing.interleaved import Round
    from intarsia.native.calibration import calibrate, machine_probes
    from intarsia.native.machine.isa import Isa
    from intarsia.target.machine_file import default_machine_model, require_writable, write_machine_model

    require_writable()
    isa, started = Isa.host(), time.monotonic()
    with exclusive_host(on_wait=console.note), machine_probes(isa) as probes, console.measuring() as report:
        calibration = calibrate(
            probes,
            isa.machine,
            isa.vector_bytes,
            isa.cores,
            on_round=lambda done, most: report(Round(done, most, time.monotonic() - started, MOST_SECONDS)),
        )
    return calibration_report(calibration, default_machine_model(), write_machine_model(calibration.model))


def _record(status: ToolchainStatus) -> dict[str, object]:
    from intarsia.toolchain import Available

    availability = status.availability
    if isinstance(availability, Available):
        return {
            "name": status.name,
            "usable": True,
            "version": availability.version,
            "reason": "",
            "help": "",
        }
    return {
        "name": status.name,
        "usable": False,
        "version": None,
        "reason": availability.reason,
        "help": availability.help,
    }


def _machine_table(host: Host, version: str, gpus: Gpus) -> Table:
    caches = (("L1d", host.l1d_bytes), ("L2", host.l2_bytes), ("L3", host.l3_bytes))
    rows = (
        ("intarsia", version),
        ("python", host.python),
        ("system", f"{host.system} {host.architecture}"),
        ("CPU", host.cpu_model),
        ("instruction sets", " ".join(host.isa) or "unknown"),
        ("usable cores", str(host.cores)),
        ("caches", ", ".join(f"{name} {cache_text(size)}" for name, size in caches)),
        *(("GPU", str(facts)) for facts in gpus.facts),
        *([] if gpus.unavailable is None else [("GPUs", f"none: {gpus.unavailable.reason}")]),
    )
    return Table(("machine", ""), rows)


def _toolchain_table(statuses: tuple[ToolchainStatus, ...]) -> Table:
    from intarsia.toolchain import Available

    rows = []
    for status in statuses:
        availability = status.availability
        if isinstance(availability, Available):
            rows.append((status.name, "works", availability.version, ""))
        else:
            rows.append((status.name, "not usable", availability.reason, availability.help))
    return Table(("toolchain", "state", "version or reason", "help"), tuple(rows))


def _thread_lines(host: Host) -> tuple[str, ...]:
    policies = [policy for policy in host.thread_policy.split("; ") if policy]
    return ("threads:", *(f"  {policy}" for policy in policies))
