"""Branch and bound over the devices of domains, for placements with the fewest copies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

SEARCH_STEPS: Final = 20_000
"""Limit of the search in one component, in domains that are given a device; about 3 us each."""


def first_best(
    options: Mapping[int, Sequence[int]],
    values: Sequence[tuple[frozenset[int], int]],
    given: Mapping[int, int],
    limit: int,
) -> dict[int, int] | None:
    """Return the first placement of the lowest cost, in the order of the options.

    A value costs its weight for each device among its domains but one. What domains without a device will
    cost is bounded by 0, so that the search is exponential at worst; it ends after `SEARCH_STEPS`.

    Args:
        options: Devices that each open domain can take, by domain.
        values: Domains and weight of each value.
        given: Devices of all other domains.
        limit: Cost that the placement may have at most.

    Returns:
        A device for each open domain; None where no placement that costs at most `limit` was met. If the
        search did not end, there may be better ones.
    """
    numbers: dict[int, list[int]] = {domain: [] for domain in options}
    devices: list[set[int]] = []
    for number, (users, _) in enumerate(values):
        devices.append({given[user] for user in users if user not in options})
        for user in users:
            if user in options:
                numbers[user].append(number)
    weights = [weight for _, weight in values]
    cost = sum(weight * max(len(taken) - 1, 0) for taken, weight in zip(devices, weights, strict=True))
    domains = list(options)
    best: dict[int, int] | None = None
    chosen: dict[int, int] = {}
    changes: list[tuple[int, list[int]]] = []
    remaining: list[Iterator[int]] = [iter(options[domains[0]])]
    for _ in range(SEARCH_STEPS):
        domain = domains[len(remaining) - 1]
        device = next(remaining[-1], None)
        if device is None:
            remaining.pop()
            if not remaining:
                return best
            cost = _undo(devices, chosen[domains[len(remaining) - 1]], *changes.pop())
            continue
        added = [number for number in numbers[domain] if device not in devices[number]]
        total = cost + sum(weights[number] for number in added if devices[number])
        if total > limit:
            continue
        chosen[domain] = device
        if len(remaining) == len(domains):
            best, limit = dict(chosen), total - 1
            continue
        for number in added:
            devices[number].add(device)
        changes.append((cost, added))
        cost = total
        remaining.append(iter(options[domains[len(remaining)]]))
    return best


def _undo(devices: Sequence[set[int]], device: int, cost: int, added: Sequence[int]) -> int:
    """Take a device away from values again, and return the cost before."""
    for number in added:
        devices[number].discard(device)
    return cost
