"""The placements on devices that are worth an evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

from intarsia.collage.device_placement.device_problem import Assignment, DeviceProblem, Link
from intarsia.collage.device_placement.device_program import DeviceProgram
from intarsia.collage.device_placement.link_costs import measured_links
from intarsia.collage.device_placement.search_devices import search_devices
from intarsia.ir import Call
from intarsia.target import VirtualDevice

CAUTION: Final = (1.0, 4.0, 16.0)
"""How many times dearer copies are taken to be: operators that are apart are not fused, which the model does
not see, so that placements with fewer copies are tried too."""


class CostOfCopies(Protocol):
    """What a copy costs."""

    @property
    def seconds(self) -> float:
        """Of any copy."""

    @property
    def seconds_per_byte(self) -> float:
        """In addition."""


def device_assignments(
    program: DeviceProgram,
    devices: Sequence[VirtualDevice],
    seconds: Mapping[Call, Sequence[float]],
    copy_cost: CostOfCopies | None,
    nodes: int,
    on_wait: Callable[[str], None] | None = None,
) -> dict[str, Assignment]:
    """Placements by a name for people: those on one device first, then what the model finds best.

    Args:
        program: Program that is placed.
        devices: Devices to place it on.
        seconds: Time of each call on each device.
        copy_cost: Cost of copies between different devices; measured if None.
        nodes: Number of partial placements that each search visits.
        on_wait: Called once with a sentence on the process that holds this host, if there is a wait.

    Raises:
        UsageError: An operator can run on none of the devices.
    """
    links = measured_links(devices, on_wait=on_wait) if copy_cost is None else _links(devices, copy_cost)
    problem = program.problem(devices, seconds, links)
    assignments: dict[str, Assignment] = {}
    for number, device in enumerate(devices):
        if all(number in open_ for open_ in problem.open_devices):
            assignments[f"all on {_name(device)}"] = (number,) * len(program.placed)
    for factor in CAUTION:
        assignment = search_devices(_with_dearer_copies(problem, factor), nodes).assignment
        if assignment not in assignments.values():
            counts = [sum(one == number for one in assignment) for number in range(len(devices))]
            shares = " + ".join(
                f"{count} on {_name(device)}" for count, device in zip(counts, devices, strict=True) if count
            )
            copies = problem.copies(assignment)
            assignments[f"{shares}, {copies} cop{'y' if copies == 1 else 'ies'} (x{factor:g})"] = assignment
    return assignments


def _links(devices: Sequence[VirtualDevice], cost: CostOfCopies) -> tuple[tuple[Link, ...], ...]:
    between = Link(cost.seconds, cost.seconds_per_byte)
    places = [(device.device_type, device.virtual_device_id) for device in devices]
    return tuple(tuple(Link() if one == other else between for other in places) for one in places)


def _with_dearer_copies(problem: DeviceProblem, factor: float) -> DeviceProblem:
    links = tuple(
        tuple(Link(link.seconds * factor, link.seconds_per_byte * factor) for link in row)
        for row in problem.links
    )
    return replace(problem, links=links)


def _name(device: VirtualDevice) -> str:
    """`cpu:0`, with a toolchain behind it: `cpu:0 native`."""
    assert device.device_type is not None
    toolchain = device.target.toolchain if device.target else None
    return " ".join(filter(None, (f"{device.device_type.kind}:{device.virtual_device_id}", toolchain)))
