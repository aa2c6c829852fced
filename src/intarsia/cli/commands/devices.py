"""`intarsia devices`: the devices of this machine, and the toolchains that make kernels for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from intarsia.cli.reports.report import Report
from intarsia.cli.reports.table import Table

if TYPE_CHECKING:
    from intarsia.toolchain.devices_here import DeviceStatus, ToolchainOnDevice


def devices() -> Report:
    """Show the devices of this machine, and what works on them.

    A program runs on several devices if it is planned for them (PlanDevices, TuneDevicePlacement). Kernels
    for a GPU have a target such as --target "cuda -toolchain=native".
    """
    from intarsia.toolchain.devices_here import devices_here, toolchains_on_devices
    from intarsia.toolchain.this_host import this_host

    statuses, states = devices_here(this_host()), toolchains_on_devices()
    document = {
        "devices": [_device_record(status) for status in statuses],
        "toolchains": [_toolchain_record(state) for state in states],
    }
    return Report(document, (_device_table(statuses), _toolchain_table(states)))


def _device_record(status: DeviceStatus) -> dict[str, object]:
    missing = status.unavailable
    return {
        "name": status.name,
        "usable": missing is None,
        "description": status.description,
        "reason": "" if missing is None else missing.reason,
        "help": "" if missing is None else missing.help,
    }


def _toolchain_record(state: ToolchainOnDevice) -> dict[str, object]:
    usable, version, reason, remedy = _described(state)
    return {
        "name": state.toolchain,
        "device": state.kind,
        "usable": usable,
        "version": version,
        "reason": reason,
        "help": remedy,
    }


def _described(state: ToolchainOnDevice) -> tuple[bool, str | None, str, str]:
    """Return whether a toolchain is usable, its version, and what is missing with the remedy."""
    from intarsia.toolchain import Available

    availability = state.availability
    if isinstance(availability, Available):
        return True, availability.version, "", ""
    return False, None, availability.reason, availability.help


def _device_table(statuses: tuple[DeviceStatus, ...]) -> Table:
    rows = []
    for status in statuses:
        missing = status.unavailable
        if missing is None:
            rows.append((status.name, "works", status.description, ""))
        else:
            rows.append((status.name, "not usable", missing.reason, missing.help))
    return Table(("device", "state", "what it is, or reason", "help"), tuple(rows))


def _toolchain_table(states: tuple[ToolchainOnDevice, ...]) -> Table:
    rows = []
    for state in states:
        usable, version, reason, remedy = _described(state)
        shown = ("works", version or "") if usable else ("not usable", reason)
        rows.append((state.kind, state.toolchain, *shown, remedy))
    return Table(("device", "toolchain", "state", "version or reason", "help"), tuple(rows))
