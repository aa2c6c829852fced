"""Which devices each domain can take, and which it gets.

What annotations say is fixed. What they leave open is chosen: of a device type without number, among the
devices of the program; where nothing is said, among all. What a program returns is on the default device,
unless something annotated reaches it without a border.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter

from intarsia.ir import GlobalVar, IRModule, post_order
from intarsia.passes.devices.device_domains import Domain, FieldsDomain, FunctionDomain, leaves
from intarsia.passes.devices.device_flow import DeviceFlow, Need, Source
from intarsia.passes.devices.min_copies import CopyProblem, fewest_copies
from intarsia.passes.devices.upward_choice import follow_arguments
from intarsia.target import DeviceType, VirtualDevice

_MAIN = "main"


@dataclass(frozen=True, slots=True)
class DeviceChoice:
    """The devices of a program.

    Attributes:
        devices: Device types and numbers, the default first.
        of: The number of the device of each domain.
        flow: The domains.
    """

    devices: tuple[VirtualDevice, ...]
    of: dict[int, int]
    flow: DeviceFlow

    def device(self, domain: int) -> VirtualDevice:
        """Device type, number and memory scope of a domain."""
        found = self.devices[self.of[self.flow.domains.find(domain)]]
        scope = self.flow.domains.known(domain).memory_scope
        return VirtualDevice(found.device_type, found.virtual_device_id, None, scope)

    def is_there(self, here: Domain, there: Domain) -> bool:
        """Whether a value can be used in another domain as it is; functions can be anywhere."""
        match here, there:
            case FieldsDomain(), _:
                places = there.fields if isinstance(there, FieldsDomain) else (there,) * len(here.fields)
                return all(map(self.is_there, here.fields, places))
            case int(), int():
                one, other = self.device(here), self.device(there)
                return one == other or (not other.memory_scope and _without_scope(one) == other)
            case _:
                return True

    def origin(self, source: Source) -> Source:
        """Where a value comes from, behind all that hold it in the place where it is anyway."""
        while (inner := self.flow.views.get(source.base)) is not None:
            held = self.flow.of[source.base]
            here = None if inner.base in self.flow.open_tuples else self.flow.domain_of(inner)
            if not (isinstance(here, int) and isinstance(held, int) and self.is_there(here, held)):
                break
            source = Source(inner.base, (*inner.path, *source.path))
        return source


def choose_devices(flow: DeviceFlow, mod: IRModule, default: VirtualDevice) -> DeviceChoice:
    """The choice with the fewest copies that keeps to the annotations, and to the default for results.

    Args:
        flow: The domains.
        mod: The program.
        default: A device type and number.
    """
    devices, allowed = _allowed(flow, default)
    reached = _reached(flow)
    for domain in _entry_results(flow, mod):
        root = flow.domains.find(domain)
        if root not in reached and len(allowed[root]) > 1:
            allowed[root] = allowed[root][:1]
    find = flow.domains.find
    users = (frozenset({find(here), *(find(need.domain) for need in needs)}) for here, needs in _values(flow))
    pairs = (frozenset({find(here), find(there)}) for here, there in flow.branches)
    problem = CopyProblem(
        allowed,
        [group for group in users if len(group) > 1],
        [pair for pair in pairs if len(pair) > 1],
    )
    return DeviceChoice(devices, fewest_copies(problem), flow)


def choose_upward(flow: DeviceFlow, default: VirtualDevice) -> DeviceChoice:
    """The choice that follows the arguments; as `choose_devices`."""
    devices, allowed = _allowed(flow, default)
    uses = [(need.number, flow.domains.find(here), need) for here, needs in _values(flow) for need in needs]
    uses.sort(key=itemgetter(0))
    pairs = [(here, flow.domains.find(need.domain)) for _, here, need in uses]
    return DeviceChoice(devices, follow_arguments(allowed, pairs), flow)


def _values(flow: DeviceFlow) -> Iterator[tuple[int, list[Need]]]:
    """For each tensor its domain, and where it is needed."""
    for (base, path), needs in flow.needs.items():
        here = flow.domain_of(Source(base, path))
        if isinstance(here, int):
            yield here, needs


def _allowed(
    flow: DeviceFlow, default: VirtualDevice
) -> tuple[tuple[VirtualDevice, ...], dict[int, tuple[int, ...]]]:
    """The devices of the program, the default first; and for each domain the numbers of those it can take."""
    roots = [root for root in range(len(flow.domains)) if flow.domains.find(root) == root]
    device_of = {root: _without_scope(flow.domains.known(root)) for root in roots}
    allowed = {device for device in device_of.values() if _is_one(device)} | {default}
    for device in device_of.values():
        if not any(VirtualDevice.join(device, other) is not None for other in allowed):
            allowed.add(VirtualDevice.default(device, _first_of_type(device, default)))
    devices = tuple(sorted(allowed, key=lambda device: (device != default, _order(device))))
    numbers: dict[VirtualDevice, tuple[int, ...]] = {}
    for device in device_of.values():
        if device not in numbers:
            fitting = (n for n, other in enumerate(devices) if VirtualDevice.join(device, other) is not None)
            numbers[device] = tuple(fitting)
    return devices, {root: numbers[device] for root, device in device_of.items()}


def _without_scope(device: VirtualDevice) -> VirtualDevice:
    return VirtualDevice(device.device_type, device.virtual_device_id)


def _is_one(device: VirtualDevice) -> bool:
    return device.device_type is not None and device.virtual_device_id is not None


def _first_of_type(device: VirtualDevice, default: VirtualDevice) -> VirtualDevice:
    type_ = device.device_type or default.device_type or DeviceType.CPU
    return default if type_ is default.device_type else VirtualDevice(type_, 0)


def _order(device: VirtualDevice) -> tuple[str, int]:
    return device.device_type.kind if device.device_type else "", device.virtual_device_id or 0


def _reached(flow: DeviceFlow) -> set[int]:
    """Domains that annotations speak of, and those that get values from them with no border between."""
    find = flow.domains.find
    weak = {find(domain) for domain in flow.weak}
    following: dict[int, list[int]] = {}
    for here, needs in _values(flow):
        if find(here) not in weak:
            users = (find(need.domain) for need in needs if not need.is_border)
            following.setdefault(find(here), []).extend(users)
    known = (root for root in map(find, range(len(flow.domains))) if root not in weak)
    reached = {root for root in known if _without_scope(flow.domains.known(root)) != VirtualDevice()}
    waiting = list(reached)
    while waiting:
        fresh = [user for user in following.get(waiting.pop(), ()) if user not in reached]
        reached.update(fresh)
        waiting += fresh
    return reached


def _entry_results(flow: DeviceFlow, mod: IRModule) -> Iterator[int]:
    """Where the functions leave their results that no other function calls."""
    called = {
        expr.name
        for var, function in mod.graph_functions.items()
        for expr in post_order(function)
        if isinstance(expr, GlobalVar) and expr.name != var.name
    } - {_MAIN}
    entries = (flow.of[one] for var, one in mod.graph_functions.items() if var.name not in called)
    results = (_results(domain) for domain in entries)
    return chain.from_iterable(results)


def _results(domain: Domain) -> tuple[int, ...]:
    return leaves(domain.result) if isinstance(domain, FunctionDomain) else ()
