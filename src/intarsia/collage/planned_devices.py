"""Which candidates keep to the virtual devices that are planned already (seed collage_rfc, phase 1)."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.graph.index_set import IndexSet
from intarsia.collage.rules.must_be_lowered import open_nodes
from intarsia.collage.sub_graph import SubGraph
from intarsia.ir import IRModule, post_order
from intarsia.target import UNCONSTRAINED, Target, VirtualDevice


@dataclass(frozen=True, slots=True, init=False)
class PlannedDevices:
    """The devices that a program's values were given before Collage.

    A candidate keeps to them if its target refines each planned one: it is the same, or
    `Target.is_external_codegen_for` it. And its values can share a device: a partition is not split over two
    devices or memories. Constants and operators, and the inside of operators' bodies, are not compared.

    Attributes:
        devices: Planned device by node, where there is one.
        planned: These nodes.
    """

    devices: dict[int, VirtualDevice]
    planned: IndexSet

    def __init__(self, graph: DataflowGraph) -> None:
        devices = {
            index: graph[index].expr.virtual_device
            for index in open_nodes(graph)
            if graph[index].expr.virtual_device != UNCONSTRAINED
        }
        object.__setattr__(self, "devices", devices)
        object.__setattr__(self, "planned", graph.set_of(devices))

    def complaint(self, sub_graph: SubGraph, target: Target) -> str | None:
        """How a target's sub-graph conflicts with what is planned: a phrase that goes on after "it"."""
        common = UNCONSTRAINED
        for device in dict.fromkeys(self.devices[index] for index in sub_graph.inside & self.planned):
            if not _refines(target, device):
                return f'is for "{target}", planned is {device}'
            joined = VirtualDevice.join(common, device)
            if joined is None:
                return f"spans {common} and {device}"
            common = joined
        return None


def spans_devices(mod: IRModule) -> bool:
    """Whether values of @main are planned on several devices, so that no toolchain can run it as a whole."""
    devices = {expr.virtual_device for expr in post_order(mod["main"])}
    return len({(device.device_type, device.virtual_device_id) for device in devices} - {(None, None)}) > 1


def _refines(target: Target, device: VirtualDevice) -> bool:
    if device.target is None:
        return device.device_type in (None, target.device_type)
    return target == device.target or target.is_external_codegen_for(device.target)
