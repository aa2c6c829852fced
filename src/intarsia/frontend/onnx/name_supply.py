"""Names of a graph's values and nodes, each given once."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class NameSupply:
    """Hands out names that are not in use yet, made from hints."""

    _taken: set[str] = field(default_factory=set)
    _counters: dict[str, int] = field(default_factory=dict)

    def fresh(self, hint: str) -> str:
        """Reserve a new name: the hint itself, or the hint with a number."""
        name = hint = hint or "value"
        while name in self._taken:
            count = self._counters[hint] = self._counters.get(hint, 0) + 1
            name = f"{hint}_{count}"
        self._taken.add(name)
        return name
