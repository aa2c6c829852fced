"""A decision to make on native's kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from intarsia.tune.choice import Choice
from intarsia.tune.instruction import Instruction
from intarsia.tune.kernels.decide_kernels import decide_kernels
from intarsia.tune.kernels.kernel_group import KernelGroup

AS_IT_IS: Final = "as it is"
"""The decision to leave a kernel to native's rule; it stands first, and wins ties."""


@dataclass(frozen=True, slots=True)
class KernelQuestion:
    """A decision to make on some fusion groups together.

    Attributes:
        name: Name of the decision.
        groups: Keys of the groups whose kernels it changes.
        choices: Choices beside native's rule, by name, the most promising first.
        most_saved: Seconds that it can save at most in one run of the program; None if only the distance from
            the best rate of the program's kernels limits it.
        has_less_work: Whether a choice may compute the same with fewer operations, which no rate limits.
    """

    name: str
    groups: tuple[str, ...]
    choices: Mapping[str, Choice]
    most_saved: float | None = None
    has_less_work: bool = False

    def instruction(self, kept: Sequence[str] | None = None) -> Instruction:
        """Return the instruction, with native's rule as the first choice.

        Args:
            kept: Names of the choices in their order; all if not given.
        """
        names = tuple(self.choices) if kept is None else kept
        return Instruction(self.name, {AS_IT_IS: Choice(), **{name: self.choices[name] for name in names}})


def question_on(
    group: KernelGroup,
    what: str,
    settings: Mapping[str, Mapping[str, str]],
    target: str,
    most_saved: float | None = None,
) -> KernelQuestion:
    """Return the question of settings of one group.

    Args:
        group: The group.
        what: Noun for the decision: "threads".
        settings: Texts of values by name of the setting, by name of the choice.
        target: Target of the whole program if it assigns no function to a toolchain; "" for none.
        most_saved: Seconds that it can save at most, if they are limited.
    """
    choices = {
        name: Choice(decide_kernels, {"settings": {group.key: dict(texts)}, "target": target})
        for name, texts in settings.items()
    }
    return KernelQuestion(f"{what} of {group.label}", (group.key,), choices, most_saved)
