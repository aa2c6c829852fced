"""The devices of open domains, such that the fewest copies are needed.

A value costs a copy for each device on which it is needed and not computed: the number of devices among
its own domain and those where it is needed, less one. Domains that hang together through such values are
solved on their own, one component after the other.

* With one or two devices around a component: exact. The value's cost is a hyperedge of a cut, modelled
  by auxiliary nodes, and the cut is a smallest one.
* With more: expansion moves (Boykov, Veksler, Zabih 2001, with the label costs of Delong et al. 2012) find a
  placement that no move improves; each is the best way to give one device to more domains. Branch and bound
  then proves it, or finds a better one. It ends after `exact_placement.SEARCH_STEPS`, so that large
  components are not proved.

Of placements with equally many copies the one is taken that keeps more pairs of `together` together, and of
these the one that leaves more on the device that comes first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from intarsia.passes.devices.exact_placement import first_best
from intarsia.passes.devices.max_flow import UNBOUNDED, FlowNetwork

Users: TypeAlias = frozenset[int]
WeightedUsers: TypeAlias = tuple[Users, int]


@dataclass(frozen=True, slots=True)
class CopyProblem:
    """Domains, and the values that cost copies between them.

    Attributes:
        allowed: For each domain the devices that it can take, as numbers; the first is preferred.
        values: For each value the domains where it is computed or needed.
        together: Pairs of domains that are preferably on one device, where that takes no more copies.
    """

    allowed: Mapping[int, Sequence[int]]
    values: Sequence[Users]
    together: Sequence[Users] = ()

    @property
    def weighted(self) -> list[WeightedUsers]:
        """All values and pairs; one copy weighs more than all pairs."""
        copy = len(self.together) + 1
        return [*((users, copy) for users in self.values), *((users, 1) for users in self.together)]


def fewest_copies(problem: CopyProblem) -> dict[int, int]:
    """A device for each domain, with the fewest copies. Near linear if components are small."""
    chosen = {domain: devices[0] for domain, devices in problem.allowed.items()}
    for domains, values in _components(problem):
        _Component(problem, domains, values, chosen).solve()
    return chosen


def _components(problem: CopyProblem) -> list[tuple[list[int], list[WeightedUsers]]]:
    """Open domains that hang together, and the values in which they take part."""
    weighted = problem.weighted
    is_open = {domain for domain, devices in problem.allowed.items() if len(devices) > 1}
    of_domain: defaultdict[int, list[int]] = defaultdict(list)
    for number, (users, _) in enumerate(weighted):
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
            near = {user for number in fresh for user in weighted[number][0] if user in is_open}
            near -= seen
            seen |= near
            domains += sorted(near)
        components.append((sorted(domains), [weighted[number] for number in sorted(numbers)]))
    return components


@dataclass(slots=True)
class _Component:
    problem: CopyProblem
    domains: list[int]
    values: list[WeightedUsers]
    chosen: dict[int, int]

    def solve(self) -> None:
        """Write the component's devices into `chosen`."""
        is_inside = set(self.domains)
        around = {self.chosen[user] for users, _ in self.values for user in users - is_inside}
        if not around and self._is_alone():
            return
        allowed = [self.problem.allowed[domain] for domain in self.domains]
        for domain, given in zip(self.domains, allowed, strict=True):
            near = [device for device in given if device in around]
            self.chosen[domain] = (near or given)[0]
        if not around.intersection(*allowed):  # else domains elsewhere could come here without more copies
            around |= {device for given in allowed for device in given}
        devices = sorted(around)
        while self._expand_each(devices):
            pass
        if len(devices) > 2:
            self._prove(devices)

    def _is_alone(self) -> bool:
        """Give all domains the first device that each of them can take; False if there is none."""
        first, *others = (self.problem.allowed[domain] for domain in self.domains)
        common = [device for device in first if all(device in allowed for allowed in others)]
        self.chosen.update(dict.fromkeys(self.domains, *common[:1]) if common else {})
        return bool(common)

    def _cost(self) -> int:
        return sum(weight * (len({self.chosen[user] for user in users}) - 1) for users, weight in self.values)

    def _prove(self, devices: list[int]) -> None:
        """Take the first of the best placements, in the order of the devices, if the search ends."""
        options = {
            domain: [device for device in self.problem.allowed[domain] if device in devices]
            for domain in self.domains
        }
        best = first_best(options, self.values, self.chosen, self._cost())
        self.chosen.update(best or {})

    def _expand_each(self, devices: list[int]) -> bool:
        """Give each device to more domains; whether that saved copies."""
        before = self._cost()
        for device in devices:
            movable = {
                domain
                for domain in self.domains
                if self.chosen[domain] != device and device in self.problem.allowed[domain]
            }
            for domain in self._best_move(device, movable):
                self.chosen[domain] = device
        return len(devices) > 2 and self._cost() < before

    def _best_move(self, device: int, movable: set[int]) -> list[int]:
        """The domains that take a device, such that the copies become the fewest."""
        network = FlowNetwork()
        nodes = {domain: network.node() for domain in sorted(movable)}
        for users, weight in self.values:
            self._add_value(network, nodes, users, device, weight)
        moved = network.source_side()
        return [domain for domain, node in nodes.items() if node in moved]

    def _add_value(
        self, network: FlowNetwork, nodes: dict[int, int], users: Users, device: int, weight: int
    ) -> None:
        """Add a value's cost: its weight for the device if a user has it then, and for each that is kept."""
        groups: defaultdict[int, list[int]] = defaultdict(list)
        for user in sorted(users):
            groups[self.chosen[user]].append(user)
        if device not in groups:
            taken = network.node()
            network.arc(taken, network.SINK, weight)
            for user in users & nodes.keys():
                network.arc(nodes[user], taken, UNBOUNDED)
        for other, keepers in groups.items():
            if other != device and all(user in nodes for user in keepers):
                kept = network.node()
                network.arc(network.SOURCE, kept, weight)
                for user in keepers:
                    network.arc(kept, nodes[user], UNBOUNDED)
