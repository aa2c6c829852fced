"""The devices of open domains, such that the fewest copies are needed.

A value costs a copy for each device on which it is needed and not computed: the number of devices among
its own domain and those where it is needed, less one. Domains that hang together through such values are
solved on their own, one component after the other.

* With one or two devices around a component: exact. The value's cost is a hyperedge of a cut, modelled
  by auxiliary nodes, and the cut is a smallest one.
* With more: all choices are tried up to `EXHAUSTIVE`; beyond, expansion moves (Boykov, Veksler, Zabih 2001,
  with the label costs of Delong et al. 2012): each is the best way to give one device to more domains, and
  the result is a placement that no such move improves.

Of equal choices the one is taken that leaves more on the device that comes first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Final

from intarsia.passes.devices.max_flow import UNBOUNDED, FlowNetwork

EXHAUSTIVE: Final = 4096
"""So many choices of a component are tried one by one."""

Users = frozenset[int]


@dataclass(frozen=True, slots=True)
class CopyProblem:
    """Domains, and the values that cost copies between them.

    Attributes:
        allowed: For each domain the devices that it can take, as numbers; the first is preferred.
        values: For each value the domains where it is computed or needed.
    """

    allowed: Mapping[int, Sequence[int]]
    values: Sequence[Users]


def fewest_copies(problem: CopyProblem) -> dict[int, int]:
    """A device for each domain, with the fewest copies. Near linear if components are small."""
    chosen = {domain: devices[0] for domain, devices in problem.allowed.items()}
    for domains, values in _components(problem):
        _Component(problem, domains, values, chosen).solve()
    return chosen


def _components(problem: CopyProblem) -> list[tuple[list[int], list[Users]]]:
    """Open domains that hang together, and the values in which they take part."""
    is_open = {domain for domain, devices in problem.allowed.items() if len(devices) > 1}
    of_domain: defaultdict[int, list[int]] = defaultdict(list)
    for number, users in enumerate(problem.values):
        for domain in users & is_open:
            of_domain[domain].append(number)
    seen: set[int] = set()
    used: set[int] = set()
    components = []
    for start in sorted(is_open):
        if start in seen:
            continue
        seen.add(start)
        domains, numbers = [start], []
        for domain in domains:
            fresh = [number for number in of_domain[domain] if number not in used]
            used.update(fresh)
            numbers += fresh
            near = {user for number in fresh for user in problem.values[number] if user in is_open}
            near -= seen
            seen |= near
            domains += sorted(near)
        components.append((sorted(domains), [problem.values[number] for number in sorted(numbers)]))
    return components


@dataclass(slots=True)
class _Component:
    problem: CopyProblem
    domains: list[int]
    values: list[Users]
    chosen: dict[int, int]

    def solve(self) -> None:
        """Write the component's devices into `chosen`."""
        is_inside = set(self.domains)
        around = {self.chosen[user] for users in self.values for user in users - is_inside}
        if not around and self._is_alone():
            return
        allowed = [self.problem.allowed[domain] for domain in self.domains]
        for domain, given in zip(self.domains, allowed, strict=True):
            near = [device for device in given if device in around]
            self.chosen[domain] = (near or given)[0]
        if not around.intersection(*allowed):  # else domains elsewhere could come here without more copies
            around |= {device for given in allowed for device in given}
        devices = sorted(around)
        if len(devices) > 2 and self._try_all(devices):
            return
        while self._expand_each(devices):
            pass

    def _is_alone(self) -> bool:
        """Give all domains the first device that each of them can take; False if there is none."""
        first, *others = (self.problem.allowed[domain] for domain in self.domains)
        common = [device for device in first if all(device in allowed for allowed in others)]
        self.chosen.update(dict.fromkeys(self.domains, *common[:1]) if common else {})
        return bool(common)

    def _copies(self) -> int:
        return sum(len({self.chosen[user] for user in users}) - 1 for users in self.values)

    def _try_all(self, devices: list[int]) -> bool:
        """Take the best of all choices; False if there are too many."""
        options = [
            [device for device in self.problem.allowed[domain] if device in devices]
            for domain in self.domains
        ]
        if prod(map(len, options)) > EXHAUSTIVE:
            return False
        best, fewest = tuple(item[0] for item in options), len(self.values) * len(devices) + 1
        for choice in product(*options):
            self.chosen.update(zip(self.domains, choice, strict=True))
            if (copies := self._copies()) < fewest:
                best, fewest = choice, copies
        self.chosen.update(zip(self.domains, best, strict=True))
        return True

    def _expand_each(self, devices: list[int]) -> bool:
        """Give each device to more domains; whether that saved copies."""
        before = self._copies()
        for device in devices:
            movable = {
                domain
                for domain in self.domains
                if self.chosen[domain] != device and device in self.problem.allowed[domain]
            }
            for domain in self._best_move(device, movable):
                self.chosen[domain] = device
        return len(devices) > 2 and self._copies() < before

    def _best_move(self, device: int, movable: set[int]) -> list[int]:
        """The domains that take a device, such that the copies become the fewest."""
        network = FlowNetwork()
        nodes = {domain: network.node() for domain in sorted(movable)}
        for users in self.values:
            self._add_value(network, nodes, users, device)
        moved = network.source_side()
        return [domain for domain, node in nodes.items() if node in moved]

    def _add_value(self, network: FlowNetwork, nodes: dict[int, int], users: Users, device: int) -> None:
        """What a value costs: one for the device if anyone has it then, one for each other that is kept."""
        groups: defaultdict[int, list[int]] = defaultdict(list)
        for user in sorted(users):
            groups[self.chosen[user]].append(user)
        if device not in groups:
            taken = network.node()
            network.arc(taken, network.SINK, 1)
            for user in users & nodes.keys():
                network.arc(nodes[user], taken, UNBOUNDED)
        for other, keepers in groups.items():
            if other != device and all(user in nodes for user in keepers):
                kept = network.node()
                network.arc(network.SOURCE, kept, 1)
                for user in keepers:
                    network.arc(kept, nodes[user], UNBOUNDED)
