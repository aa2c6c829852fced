"""The devices of open domains, strictly upward: from arguments to their users (RFC 0045, lite planning)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence


def follow_arguments(allowed: Mapping[int, Sequence[int]], uses: Iterable[tuple[int, int]]) -> dict[int, int]:
    """A device for each domain. Linear.

    Args:
        allowed: For each domain the devices that it can take; the first is preferred.
        uses: Pairs of the domain of a value, and one where it is needed, in the order of
            evaluation.

    Returns:
        An open domain has the device of the first that reaches it from its arguments; what nothing reaches
        (parameters) has that of a user; the rest its first.
    """
    pairs = list(uses)
    chosen = {domain: devices[0] for domain, devices in allowed.items() if len(devices) == 1}
    for value, user in pairs:
        if user not in chosen and chosen.get(value) in allowed[user]:
            chosen[user] = chosen[value]
    for forward in (True, False):
        _spread(chosen, allowed, pairs if forward else [(user, value) for value, user in pairs])
    return {domain: chosen.get(domain, devices[0]) for domain, devices in allowed.items()}


def _spread(
    chosen: dict[int, int], allowed: Mapping[int, Sequence[int]], pairs: list[tuple[int, int]]
) -> None:
    """Give the devices on along the pairs, breadth first, in the order of the domains."""
    following: dict[int, list[int]] = {}
    for tail, head in pairs:
        following.setdefault(tail, []).append(head)
    waiting = deque(sorted(chosen))
    while waiting:
        domain = waiting.popleft()
        for user in following.get(domain, ()):
            if user not in chosen and chosen[domain] in allowed[user]:
                chosen[user] = chosen[domain]
                waiting.append(user)
