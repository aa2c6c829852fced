"""Whether the order of a sequence suits its passes, reported before anything runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from intarsia.support.errors import UsageError
from intarsia.transform.compiler_pass import Pass
from intarsia.transform.enablement import enablement
from intarsia.transform.pass_context import PassContext
from intarsia.transform.pass_registry import get_pass, has_pass

if TYPE_CHECKING:
    from intarsia.transform.sequential import Sequential


@dataclass(frozen=True, slots=True)
class OrderProblem:
    """A constraint that a sequence breaks.

    Attributes:
        pass_name: The pass whose constraint it is.
        problem: What is wrong.
        fix: What to do.
    """

    pass_name: str
    problem: str
    fix: str

    def __str__(self) -> str:
        return f"{self.pass_name} {self.problem}: {self.fix}"


@dataclass(eq=False)
class PassOrderError(UsageError):
    """A sequence whose passes do not go together; nothing has run."""


def check_order(sequence: Sequential, ctx: PassContext) -> None:
    """Check every constraint of the passes that a sequence will run under a context.

    Raises:
        PassOrderError: Some are broken; all of them are listed, with what to do.
    """
    problems = tuple(order_problems(sequence, ctx))
    if problems:
        lines = "".join(f"\n  {item}" for item in problems)
        raise PassOrderError(f"the passes of {sequence.info.name!r} cannot run in this order:{lines}")


def order_problems(sequence: Sequential, ctx: PassContext) -> Iterator[OrderProblem]:
    """The constraints that a sequence breaks (the dependency checker of seed relax_pass_infra)."""
    stated = tuple(_running(sequence, ctx))
    yield from _unresolved(stated)
    executed = [item.info.name for item in _with_required(stated)]
    for position, item in enumerate(stated):
        yield from _misplaced(item, position, stated, executed)


def _running(sequence: Sequential, ctx: PassContext) -> Iterator[Pass]:
    """The passes that stand in the sequence, nested ones included, and are enabled."""
    for item in sequence.passes:
        if enablement(item.info, ctx).is_enabled:
            if isinstance(item, type(sequence)):
                yield from _running(item, ctx)
            else:
                yield item


def _unresolved(stated: Sequence[Pass]) -> Iterator[OrderProblem]:
    """Required passes that there are not, and requirements that go round in a circle."""
    reported = set()
    pending: list[tuple[Pass, tuple[str, ...]]] = [(item, (item.info.name,)) for item in reversed(stated)]
    while pending:
        item, path = pending.pop()
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
                    item.info.name, f"requires itself ({circle})", "remove one of the requirements"
                )
            else:
                pending.append((get_pass(name), (*path, name)))


def _with_required(stated: Sequence[Pass]) -> Iterator[Pass]:
    """The passes in the order in which they run, required ones included."""
    for item in stated:
        pending = [(item, False)]
        open_names: set[str] = set()
        while pending:
            needed, is_ready = pending.pop()
            if is_ready:
                open_names.discard(needed.info.name)
                yield needed
            elif needed.info.name not in open_names:
                open_names.add(needed.info.name)
                pending.append((needed, True))
                pending.extend(
                    (get_pass(name), False) for name in reversed(needed.info.required) if has_pass(name)
                )


def _misplaced(
    item: Pass, position: int, stated: Sequence[Pass], executed: Sequence[str]
) -> Iterator[OrderProblem]:
    info = item.info
    names = [other.info.name for other in stated]
    for name in info.after:
        if name not in executed:
            yield OrderProblem(
                info.name, f"must come after {name}, which does not run", f"add {name} before it"
            )
        elif executed.index(name) > executed.index(info.name):
            yield OrderProblem(
                info.name, f"must come after {name}, but comes before it", f"move {name} before it"
            )
    before = names[position - 1] if position else "nothing"
    if info.directly_after and before != info.directly_after:
        yield OrderProblem(
            info.name,
            f"must come directly after {info.directly_after}, but comes after {before}",
            f"put {info.directly_after} just before it",
        )
    follower = names[position + 1] if position + 1 < len(names) else "nothing"
    if info.directly_before and follower != info.directly_before:
        yield OrderProblem(
            info.name,
            f"must come directly before {info.directly_before}, but {follower} comes next",
            f"put {info.directly_before} just after it",
        )
    for name in info.conflicts:
        if name in names:
            yield OrderProblem(info.name, f"conflicts with {name}", "run one of the two, disable the other")
