"""What a sequence will do under a context, and why (challenge C4 of seed relax_pass_infra)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from intarsia.transform.compiler_pass import Pass
from intarsia.transform.enablement import enablement
from intarsia.transform.pass_context import PassContext
from intarsia.transform.pass_registry import get_pass

if TYPE_CHECKING:
    from intarsia.transform.sequential import Sequential


@dataclass(frozen=True, slots=True)
class ExplainedPass:
    """One pass of a sequence.

    Attributes:
        name: The pass.
        runs: Whether it will run (instruments may still say no).
        reason: Why.
        depth: 0 for the passes of the sequence itself, 1 for those of a sequence in it, and so on.
    """

    name: str
    runs: bool
    reason: str
    depth: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """The passes in the order in which they will run, those that will not run included.

    Attributes:
        passes: One entry a pass; required passes before the pass that requires them.
    """

    passes: tuple[ExplainedPass, ...]

    @property
    def running(self) -> tuple[str, ...]:
        """Names of those that will run."""
        return tuple(item.name for item in self.passes if item.runs)

    def __str__(self) -> str:
        """A line a pass: whether it runs, its name, and the reason."""
        width = max((len(item.name) + 2 * item.depth for item in self.passes), default=0)
        return "\n".join(
            f"{'run ' if item.runs else 'skip'}  {'  ' * item.depth + item.name:{width}}  {item.reason}"
            for item in self.passes
        )


def explain(sequence: Sequential, ctx: PassContext) -> Explanation:
    """What `sequence(mod, ctx)` will run."""
    return Explanation(tuple(_explained(sequence, ctx, 0)))


def _explained(sequence: Sequential, ctx: PassContext, depth: int) -> Iterator[ExplainedPass]:
    for item in sequence.passes:
        found = enablement(item.info, ctx)
        if found.is_enabled:
            yield from _required(item, depth)
        yield ExplainedPass(item.info.name, found.is_enabled, found.reason, depth)
        if isinstance(item, type(sequence)) and found.is_enabled:
            yield from _explained(item, ctx, depth + 1)


def _required(item: Pass, depth: int) -> Iterator[ExplainedPass]:
    for name in item.info.required:
        needed = get_pass(name)
        yield from _required(needed, depth)
        yield ExplainedPass(needed.info.name, True, f"required by {item.info.name}", depth)
