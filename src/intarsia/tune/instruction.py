"""A decision that is to be made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Self

from intarsia.ir import IRModule
from intarsia.support.errors import UsageError
from intarsia.transform import PassContext
from intarsia.tune.choice import Choice


@dataclass(frozen=True)
class Instruction:
    """Choices by key, one of which is taken (seed relax_pass_infra, Instruction; later upstream's Knob).

    Attributes:
        name: Name of the decision.
        choices: Choices by key; the keys of a list are "0", "1", ...

    Raises:
        UsageError: There is no choice.
    """

    name: str
    choices: Mapping[str, Choice] | Sequence[Choice]

    def __post_init__(self) -> None:
        given = self.choices
        numbered = {} if isinstance(given, Mapping) else {str(at): choice for at, choice in enumerate(given)}
        choices = dict(given) if isinstance(given, Mapping) else numbered
        if not choices or not all(isinstance(choice, Choice) for choice in choices.values()):
            raise UsageError(f"instruction {self.name!r} needs choices, at least one, got {given!r}")
        object.__setattr__(self, "choices", MappingProxyType(choices))

    @property
    def by_key(self) -> Mapping[str, Choice]:
        """The choices."""
        assert isinstance(self.choices, Mapping)
        return self.choices

    @property
    def decisions(self) -> tuple[str, ...]:
        """The keys, in order."""
        return tuple(self.by_key)

    def verify(self, decision: str) -> bool:
        """Whether there is such a choice."""
        return decision in self.by_key

    def choice(self, decision: str) -> Choice:
        """The choice of a key.

        Raises:
            UsageError: There is none.
        """
        if decision not in self.by_key:
            raise UsageError(
                f"instruction {self.name!r} has no choice {decision!r}",
                help=f"it has: {', '.join(self.by_key)}",
            )
        return self.by_key[decision]

    def apply(self, mod: IRModule, decision: str, ctx: PassContext | None = None) -> IRModule:
        """A module after a decision.

        Raises:
            UsageError: There is no such choice.
        """
        return self.choice(decision).apply(mod, ctx)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"name": self.name, "choices": {key: one.to_json() for key, one in self.by_key.items()}}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the instruction that `to_json` wrote.

        Raises:
            UsageError: It is no such data.
        """
        try:
            return cls(data["name"], {key: Choice.from_json(one) for key, one in data["choices"].items()})
        except (KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"not an instruction: {error}") from None

    def __str__(self) -> str:
        """The name, and a line a choice."""
        lines = [f"  {key}: {choice}" for key, choice in self.by_key.items()]
        return "\n".join([f"{self.name}:", *lines])
