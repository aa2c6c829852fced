"""What a sequence will do under a context, and why (challenge C4 of seed relax_pass_infra)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from intarsia.transform.compiler_pass import Pass
from intarsia.transform.enablement import enablement
from intarsia.transform.pass_context import PassContext
from intarsia.transform.pass_order import OrderProblem, order_problems, passes_inside
from intarsia.transform.pass_registry import create_pass, has_pass


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
        problems: Constraints that the sequence breaks: with any, it is refused, and nothing runs.
        unused: Names in the context's `disabled_pass` and `required_pass` that no pass here has.
    """

    passes: tuple[ExplainedPass, ...]
    problems: tuple[OrderProblem, ...] = ()
    unused: tuple[str, ...] = ()

    @property
    def running(self) -> tuple[str, ...]:
        """Names of those that will run."""
        return tuple(item.name for item in self.passes if item.runs)

    def __str__(self) -> str:
        """A line a pass: whether it runs, its name, and the reason; then what is wrong with the whole."""
        width = max((len(item.name) + 2 * item.depth for item in self.passes), default=0)
        lines = [
            f"{'run ' if item.runs else 'skip'}  {'  ' * item.depth + item.name:{width}}  {item.reason}"
            for item in self.passes
        ]
        lines += [f"refused: {item}" for item in self.problems]
        lines += [f"no such pass here: {name}" for name in self.unused]
        return "\n".join(lines)


def explain(sequence: Pass, ctx: PassContext) -> Explanation:
    """What `sequence(mod, ctx)` will run."""
    passes = tuple(_explained(sequence, ctx, 0, (sequence.info.name,)))
    names = {item.name for item in passes} | {item.info.name for item in passes_inside(sequence)}
    unused = tuple(name for name in (*ctx.required_pass, *ctx.disabled_pass) if name not in names)
    return Explanation(passes, tuple(order_problems(sequence, ctx)), unused)


def _explained(
    sequence: Pass, ctx: PassContext, depth: int, path: tuple[str, ...]
) -> Iterator[ExplainedPass]:
    for item in sequence.inner_passes:
        decision = enablement(item.info, ctx)
        if decision.is_enabled:
            yield from _required(item, ctx, depth, path)
        yield ExplainedPass(item.info.name, decision.is_enabled, decision.reason, depth)
        if decision.is_enabled:
            yield from _explained(item, ctx, depth + 1, (*path, item.info.name))


def _required(item: Pass, ctx: PassContext, depth: int, around: tuple[str, ...]) -> Iterator[ExplainedPass]:
    """The passes that a pass requires; one that is being explained already closes a circle."""
    path = (*around, item.info.name)
    for name in item.info.required:
        reason = f"required by {item.info.name}"
        if name in path or not has_pass(name):
            yield ExplainedPass(name, False, f"{reason}, which cannot be met", depth)
            continue
        needed = create_pass(name)
        yield from _required(needed, ctx, depth, path)
        strength = ", stronger than disabled_pass" if name in ctx.disabled_pass else ""
        yield ExplainedPass(name, True, reason + strength, depth)
        yield from _explained(needed, ctx, depth + 1, (*path, name))
