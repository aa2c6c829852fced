"""Traces: the decisions on a program, and the program after them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, Self

from intarsia.ir import IRModule, structural_digest
from intarsia.support.errors import UsageError
from intarsia.support.json_text import parse_json_text
from intarsia.transform import PassContext
from intarsia.tune.instruction import Instruction


@dataclass(frozen=True, slots=True)
class TraceStep:
    """An instruction with its decision."""

    instruction: Instruction
    decision: str


class Trace:
    """A program, the decisions made on it, and the program after them (seed relax_pass_infra, Trace).

    Modules are immutable, so that nothing is copied.

    Attributes:
        in_mod: The program before.
        steps: The decisions, in order.
        out_mod: The program after them.
        perf: Cost by the evaluator's metric, usually seconds; less is better, infinite is a failure. None
            before the evaluation.
        fate: Reason of a failure; "" without one, or before the evaluation.
    """

    def __init__(self, in_mod: IRModule) -> None:
        self.in_mod = in_mod
        self.steps: tuple[TraceStep, ...] = ()
        self.out_mod = in_mod
        self.perf: float | None = None
        self.fate = ""

    @property
    def size(self) -> int:
        """Number of decisions."""
        return len(self.steps)

    @property
    def cost(self) -> float:
        """The cost to compare traces by; infinite before the evaluation, and if `perf` is no cost."""
        return self.perf if self.perf is not None and is_cost(self.perf) else inf

    @property
    def has_failed(self) -> bool:
        """Whether the trace cannot be used: a decision, or its evaluation, has failed."""
        return self.perf is not None and not is_cost(self.perf)

    def fail(self, reason: str) -> None:
        """Mark the trace as failed, so that it is not evaluated."""
        self.perf, self.fate = inf, reason

    def reopened(self) -> Trace:
        """Return a copy without a failure: after further decisions the program may work."""
        other = self.copy()
        if other.has_failed:
            other.perf, other.fate = None, ""
        return other

    def copy(self) -> Trace:
        """Return a copy that can be extended independently."""
        other = Trace(self.in_mod)
        other.steps, other.out_mod, other.perf, other.fate = self.steps, self.out_mod, self.perf, self.fate
        return other

    def add(self, instruction: Instruction, decision: str, ctx: PassContext | None = None) -> None:
        """Add a decision and apply its choice; resets the cost.

        Raises:
            UsageError: The instruction has no such choice.
        """
        self.note(instruction, decision, instruction.apply(self.out_mod, decision, ctx))

    def note(self, instruction: Instruction, decision: str, after: IRModule) -> None:
        """Add a decision after its choice has been applied.

        Args:
            instruction: The instruction.
            decision: Key of the choice.
            after: The program after the choice.

        Raises:
            UsageError: The instruction has no such choice.
        """
        instruction.choice(decision)
        self.steps = (*self.steps, TraceStep(instruction, decision))
        self.out_mod, self.perf, self.fate = after, None, ""

    def verify(self) -> bool:
        """Whether each decision is one of its instruction's."""
        return all(step.instruction.verify(step.decision) for step in self.steps)

    def replay(self, mod: IRModule | None = None, ctx: PassContext | None = None) -> IRModule:
        """Apply the decisions again.

        Args:
            mod: The program to apply them to; default: `in_mod`.
            ctx: Context of the passes.
        """
        after = self.in_mod if mod is None else mod
        for step in self.steps:
            after = step.instruction.apply(after, step.decision, ctx)
        return after

    def to_json(self) -> str:
        """JSON text, with digests in place of programs; `from_json` reads it, also in another process."""
        data: dict[str, Any] = {
            "in": structural_digest(self.in_mod),
            "steps": [[step.instruction.to_json(), step.decision] for step in self.steps],
            "out": structural_digest(self.out_mod),
            "perf": None if self.perf is None else repr(self.perf),  # JSON has no infinity
            "fate": self.fate,
        }
        return json.dumps(data, indent=1)

    @classmethod
    def from_json(cls, text: str, mod: IRModule) -> Self:
        """Read a trace, and apply its decisions to its program again.

        Args:
            text: JSON text of `to_json`.
            mod: The program of the trace.

        Raises:
            UsageError: The text is no trace, the program is another one, or the decisions now lead elsewhere.
        """
        before, after = _digests(text)
        _compare(mod, before, "this trace is of another program")
        trace = cls.replayed(text, mod)
        _compare(trace.out_mod, after, "the decisions of this trace now lead to another program")
        return trace

    @classmethod
    def replayed(cls, text: str, mod: IRModule) -> Self:
        """Read a trace, and apply its decisions to a program that may differ from the one it was made of.

        Args:
            text: JSON text of `to_json`.
            mod: The program, such as the same one with other weights.

        Raises:
            UsageError: The text is no trace, or a decision does not apply.
        """
        try:
            data = parse_json_text(text)
            steps = [
                TraceStep(Instruction.from_json(instruction), decision)
                for instruction, decision in data["steps"]
            ]
            perf, fate = None if data["perf"] is None else float(data["perf"]), str(data["fate"])
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(f"not a trace: {error}") from None
        if perf is not None and not (perf == inf or is_cost(perf)):
            raise UsageError(f"not a trace: its cost is {perf:g}")
        trace = cls(mod)
        for step in steps:
            trace.add(step.instruction, step.decision)
        trace.perf, trace.fate = perf, fate
        return trace

    def __str__(self) -> str:
        """One line per decision, then the cost or failure."""
        lines = [f"{step.instruction.name}: {step.decision}" for step in self.steps] or ["no decision"]
        if self.perf is None:
            return "\n".join(lines)
        return "\n".join([*lines, f"-> {self.fate or f'{1e3 * self.perf:.4g} ms'}"])


def is_cost(number: float) -> bool:
    """Whether a number is the cost of something that works: finite, and not below 0."""
    return isfinite(number) and number >= 0


def get_trace(given: IRModule | Trace) -> Trace:
    """A trace of a module without decisions, or a copy of a trace, which can go on.

    Raises:
        UsageError: It is neither.
    """
    if isinstance(given, Trace):
        return given.copy()
    if isinstance(given, IRModule):
        return Trace(given)
    raise UsageError(f"a trace begins with an IRModule, got {type(given).__name__}")


def _digests(text: str) -> tuple[str, str]:
    """Return the digests of the programs before and after a trace."""
    try:
        data = parse_json_text(text)
        return str(data["in"]), str(data["out"])
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"not a trace: {error}") from None


def _compare(mod: IRModule, digest: str, problem: str) -> None:
    actual = structural_digest(mod)
    if actual != digest:
        raise UsageError(
            f"{problem}: digest {actual[:12]}, recorded {digest[:12]}",
            help="use the program, and the version of the passes, that the trace was recorded with",
        )
