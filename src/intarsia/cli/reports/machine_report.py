"""Report of the machine model: each value, its default, and where it comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from intarsia.cli.reports.report import Block, Report
from intarsia.cli.reports.table import Table
from intarsia.support.units import cache_text

if TYPE_CHECKING:
    from intarsia.native.calibration.calibrate import Calibration
    from intarsia.target.machine_file import MachineFile
    from intarsia.target.machine_model import MachineModel

_LABELS: Final = {
    "first_ways": ("lines of a set, L1d", ""),
    "line_bytes": ("cache line", "bytes"),
    "page_bytes": ("page", "bytes"),
    "fma_latency": ("multiply-add, latency", "cycles"),
    "fma_pipes": ("multiply-adds, most", "per cycle"),
    "fma_bytes": ("multiply-adds, width", "bytes per cycle"),
    "first_bandwidth": ("loads from L1d", "bytes per cycle"),
    "second_bandwidth": ("loads from L2", "bytes per cycle"),
    "third_bandwidth": ("loads from L3, one core", "bytes per cycle"),
    "busy_third_bandwidth": ("loads from L3, each of all cores", "bytes per cycle"),
    "memory_bandwidth": ("loads from memory, one core", "bytes per cycle"),
    "busy_memory_bandwidth": ("loads from memory, each of all cores", "bytes per cycle"),
    "huge_page_speedup": ("memory in huge pages", "times as fast"),
    "barrier_cycles": ("barrier of all cores", "cycles"),
}
_NUMERIC: Final = frozenset({1, 2, 3})


def machine_lines(machine: MachineFile) -> tuple[str, ...]:
    """Return the lines of `doctor` on the source of the machine model, and how to measure it."""
    help_line = "  help: measure them with: intarsia doctor --calibrate (under 20 seconds)"
    if machine.problem:
        return (
            f"machine model: defaults of {machine.model.family}; {machine.path} {machine.problem}",
            help_line,
        )
    if machine.measured:
        return (f"machine model: measured, in {machine.path}",)
    return (f"machine model: defaults of {machine.model.family}, not measured", help_line)


def machine_record(machine: MachineFile) -> dict[str, object]:
    """Return the machine model as plain data."""
    model = machine.model
    return {
        "family": model.family,
        "file": str(machine.path),
        "measured": list(machine.measured),
        "problem": machine.problem or None,
        "values": {name: getattr(model, name) for name in _LABELS},
    }


def calibration_report(calibration: Calibration, default: MachineModel, stored: MachineFile) -> Report:
    """Return the report of a calibration.

    Args:
        calibration: The calibration.
        default: Model without any measurement.
        stored: Model as stored.
    """
    changed = [name for name in _LABELS if getattr(default, name) != getattr(stored.model, name)]
    document = machine_record(stored) | {
        "default": {name: getattr(default, name) for name in _LABELS},
        "raw": dict(calibration.measured),
        "missing": dict(calibration.missing),
        "gigahertz": calibration.hertz / 1e9,
        "seconds": calibration.seconds,
        "changed": changed,
    }
    caches = stored.model.caches
    sizes = (("L1d", caches.first), ("L2", caches.second), ("L3", caches.third))
    blocks: list[Block] = [
        Table(
            ("value", "default", "measured", "in use", "unit", ""),
            _rows(calibration, default, stored),
            _NUMERIC,
        ),
        f"caches: {', '.join(f'{name} {cache_text(size)}' for name, size in sizes)}",
        f"measured at {calibration.hertz / 1e9:.2f} GHz in {calibration.seconds:.1f} s",
        f"stored in {stored.path}",
        _verdict(changed, default.family),
    ]
    return Report(document, tuple(blocks))


def _rows(
    calibration: Calibration, default: MachineModel, stored: MachineFile
) -> tuple[tuple[str, ...], ...]:
    rows = []
    for name, (label, unit) in _LABELS.items():
        measured = calibration.measured.get(name)
        rows.append(
            (
                label,
                f"{getattr(default, name):g}",
                "" if measured is None else f"{measured:.4g}",
                f"{getattr(stored.model, name):g}",
                unit,
                f"not measured: {calibration.missing[name]}" if name in calibration.missing else "",
            )
        )
    return tuple(rows)


def _verdict(changed: list[str], family: str) -> str:
    if not changed:
        return f"the defaults of {family} hold here: kernels and measurements stay valid"
    return (
        f"{len(changed)} values differ from the defaults of {family}: kernels follow them, and measurements "
        "in databases count for this machine as it is described now"
    )
