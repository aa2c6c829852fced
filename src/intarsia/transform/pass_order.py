"""Whether the order of a sequence suits its passes, reported before anything runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from intarsia.support.errors import UsageError
from intarsia.transform.compiler_pass import Pass
from intarsia.transform.enablement import enablement
from intarsia.transform.pass_context import PassContext
from intarsia.transform.pass_info import PassInfo
from intarsia.transform.pass_registry import create_pass, has_pass


@dataclass(frozen=True, slots=True)
class OrderProblem:
    """A constraint that a sequence breaks.

    Attributes:
        pass_name: Name of the pass with the constraint.
        problem: Text of the problem.
        fix: Text of the remedy.
        is_circle: Whether passes require each other, so that no order can say what would run.
    """

    pass_name: str
    problem: str
    fix: str
    is_circle: bool = False

    def __str__(self) -> str:
        return f"{self.pass_name} {self.problem}: {self.fix}"


@dataclass(eq=False)
class PassOrderError(UsageError):
    """A sequence of passes that do not fit together; nothing has run."""


def check_order(sequence: Pass, ctx: PassContext) -> None:
    """Check every constraint of the passes that a sequence will run under a context.

    Raises:
        PassOrderError: Some are broken; all of them are listed, with what to do.
    """
    problems = tuple(order_problems(sequence, ctx))
    if problems:
        lines = "".join(f"\n  {item}" for item in problems)
        raise PassOrderError(f"the passes of {sequence.info.name!r} cannot run in this order:{lines}")


def order_problems(sequence: Pass, ctx: PassContext) -> Iterator[OrderProblem]:
    """The constraints that a sequence breaks (the dependency checker of seed relax_pass_infra)."""
    stated = tuple(_running(sequence, ctx))
    unresolved = tuple(_unresolved(sequence, ctx))
    yield from unresolved
    above = frozenset(_above_level(sequence, ctx))
    if not any(problem.is_circle for problem in unresolved):
        executed = [item.info for item in _executed(sequence, ctx)]
        names = [info.name for info in executed]
        for info in dict.fromkeys(executed):
            yield from _misplaced(info, names, above)
    for position, item in enumerate(stated):
        yield from _parted(item.info, position, [other.info.name for other in stated], above)


def _running(sequence: Pass, ctx: PassContext) -> Iterator[Pass]:
    """The passes that stand in the sequence, nested ones included, and are enabled."""
    for item in sequence.inner_passes:
        if enablement(item.info, ctx).is_enabled:
            if isinstance(item, type(sequence)):
                yield from _running(item, ctx)
            else:
                yield item


def _above_level(sequence: Pass, ctx: PassContext) -> Iterator[str]:
    """The passes that stand in the sequence, and do not run because of their level or that of one around.

    They break no constraint: the same sequence has to run at every level. Passes disabled by name do.
    """
    for item in sequence.inner_passes:
        if enablement(item.info, ctx).is_enabled:
            yield from _above_level(item, ctx)
        elif item.info.name not in ctx.disabled_pass:
            yield from (item.info.name, *(inner.info.name for inner in passes_inside(item)))


def passes_inside(item: Pass) -> Iterator[Pass]:
    """Every pass inside a sequence, also inside nested ones, whether it runs or not."""
    for inner in item.inner_passes:
        yield inner
        yield from passes_inside(inner)


def _enabled(item: Pass, ctx: PassContext) -> tuple[Pass, ...]:
    """The passes that a pass runs inside, if it is a sequence."""
    return tuple(each for each in item.inner_passes if enablement(each.info, ctx).is_enabled)


def _unresolved(sequence: Pass, ctx: PassContext) -> Iterator[OrderProblem]:
    """Required passes that there are not, and requirements that go round in a circle."""
    reported = set()
    outermost = (sequence.info.name,)
    pending: list[tuple[Pass, tuple[str, ...]]] = [
        (item, (*outermost, item.info.name)) for item in reversed(_enabled(sequence, ctx))
    ]
    while pending:
        item, path = pending.pop()
        pending.extend((inner, (*path, inner.info.name)) for inner in reversed(_enabled(item, ctx)))
        for name in item.info.required:
            if (item.info.name, name) in reported:
                continue
            reported.add((item.info.name, name))
            if not has_pass(name):
                yield OrderProblem(
                    item.info.name,
                    f"requires {name}, which is not registered",
                    "register it, or check the name",
                )
            elif name in path:
                circle = " requires ".join((*path[path.index(name) :], name))
                yield OrderProblem(
                    item.info.name, f"requires itself ({circle})", "remove one of the requirements", True
                )
            else:
                pending.append((create_pass(name), (*path, name)))


def _executed(sequence: Pass, ctx: PassContext) -> Iterator[Pass]:
    """The passes in the order in which they run, required ones included; needs that there is no circle."""
    pending = [(item, False) for item in reversed(_enabled(sequence, ctx))]
    while pending:
        item, is_ready = pending.pop()
        if is_ready:
            yield item
            continue
        pending.append((item, True))
        pending.extend((inner, False) for inner in reversed(_enabled(item, ctx)))
        pending.extend((create_pass(name), False) for name in reversed(item.info.required) if has_pass(name))


def _misplaced(info: PassInfo, executed: Sequence[str], above: Collection[str]) -> Iterator[OrderProblem]:
    """What is wrong with the passes that run before a pass, and with those that run at all."""
    for name in info.after:
        if name not in executed and name in above:
            continue
        if name not in executed:
            yield OrderProblem(
                info.name, f"must come after {name}, which does not run", f"add {name} before it"
            )
        elif executed.index(name) > executed.index(info.name):
            yield OrderProblem(
                info.name, f"must come after {name}, but comes before it", f"move {name} before it"
            )
    for name in info.conflicts:
        if name in executed:
            yield OrderProblem(info.name, f"conflicts with {name}", "run one of the two, disable the other")


def _parted(
    info: PassInfo, position: int, stated: Sequence[str], above: Collection[str]
) -> Iterator[OrderProblem]:
    """What is wrong with the neighbours of a pass, required passes not counted."""
    before = stated[position - 1] if position else "nothing"
    if info.directly_after not in ("", before, *above):
        yield OrderProblem(
            info.name,
            f"must come directly after {info.directly_after}, but comes after {before}",
            f"put {info.directly_after} just before it",
        )
    follower = stated[position + 1] if position + 1 < len(stated) else "nothing"
    if info.directly_before not in ("", follower, *above):
        yield OrderProblem(
            info.name,
            f"must come directly before {info.directly_before}, but {follower} comes next",
            f"put {info.directly_before} just after it",
        )
