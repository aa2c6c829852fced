"""How an operator is said in torch: a rule looks at a node once, and gives what computes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from intarsia.runtime.kernel import Array
from intarsia.support.errors import CompileError

Tensor: TypeAlias = Any
"""A `torch.Tensor`, or None for an absent optional input."""
Computation: TypeAlias = Callable[..., Any]
"""Takes the node's inputs; gives a tensor, or a sequence of tensors for several outputs."""


@dataclass(frozen=True, slots=True)
class NodeForm:
    """What is known of a node before the run.

    Attributes:
        operator: Name of its operator.
        attributes: Attributes by name, as Python values.
        fixed: Values of its inputs that are known, None for the others.
        outputs: Number of its outputs that are used.
        given: For each of its inputs whether it is there.
    """

    operator: str
    attributes: Mapping[str, Any]
    fixed: Sequence[Array | None]
    outputs: int
    given: Sequence[bool]

    def has(self, position: int) -> bool:
        """Whether there is an input at a position."""
        return position < len(self.given) and self.given[position]

    def attribute(self, name: str, default: Any) -> Any:
        """The value of an attribute."""
        return self.attributes.get(name, default)

    def text(self, name: str, default: str) -> str:
        """The value of an attribute that is a text."""
        found = self.attributes.get(name, default)
        return found.decode() if isinstance(found, bytes) else str(found)

    def numbers(self, position: int) -> list[int] | None:
        """The whole numbers that an input lists, None where it is absent; it was seen to be known."""
        found = self.fixed[position] if position < len(self.fixed) else None
        return None if found is None else [int(number) for number in found.reshape(-1)]

    def require(self, condition: bool, what: str) -> None:
        """Do nothing if the condition holds.

        Raises:
            CompileError: It does not: the operator is not covered with what is said.
        """
        if not condition:
            raise refusal(f"operator '{self.operator}' {what}")


Rule: TypeAlias = Callable[[NodeForm], Computation]


def refusal(problem: str) -> CompileError:
    """The error for what this toolchain does not cover."""
    return CompileError(f"torch cannot compile this: {problem}")


def plain(function: Computation) -> Rule:
    """The rule of an operator without attributes and optional forms."""
    return lambda _: function
