"""The context that tuning passes run in."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from intarsia.ir import IRModule
from intarsia.support.errors import UsageError
from intarsia.transform import Pass, PassContext, PassTrace
from intarsia.transform.pass_trace import TracedPass
from intarsia.tune.evaluator import Evaluator
from intarsia.tune.heuristic_pass import APPLIED, HeuristicPass
from intarsia.tune.program_memo import ProgramMemo
from intarsia.tune.run_control import RunControl
from intarsia.tune.trace import Trace
from intarsia.tune.tuning_tree import ROOT, TuningNode


@dataclass(slots=True)
class EvaluationCounts:
    """Numbers of evaluated candidates.

    Attributes:
        proposed: Number of candidates that passes evaluated.
        measured: Number of candidates with a new measurement.
        distinct: Number of different candidates in this run, also if an earlier run has measured them: so a
            resumed run counts like an uninterrupted one.
    """

    proposed: int = 0
    measured: int = 0
    distinct: int = 0


class TuningContext(PassContext):
    """A `PassContext` with an evaluator for tuning passes, and counts (seed relax_pass_infra).

    Settings and instruments that are not given are those of the context in which it is made.

    Attributes:
        evaluator: Evaluator of candidates; it holds target, database and measure options.
        control: Budget of all passes in this context, with callbacks.
        counts: Numbers of evaluations in this context and in all contexts copied from it.
        node: Node of the tuning tree under which candidates are recorded; print it.
        begun: Number of decisions before the pass that runs.
        memo: Results computed from programs, such as programs after choices.
        expansions: Substitutions of programs and the programs after them; large.
        on_wait: Called with a sentence on the process that holds this host, if there is a wait; or None.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        memo: ProgramMemo | None = None,
        *,
        control: RunControl | None = None,
        on_wait: Callable[[str], None] | None = None,
        **settings: Any,
    ) -> None:
        """A context.

        Args:
            evaluator: Evaluator of candidates.
            memo: Memo of another context with the same settings, to share its programs.
            control: Budget of all passes; default: none ends.
            on_wait: Value of the attribute `on_wait`.
            settings: Arguments of `PassContext`; default: those of the surrounding context.
        """
        super().__init__(**{**PassContext.current().settings, **settings})
        self.evaluator = evaluator
        self.control = control or RunControl()
        self.counts = EvaluationCounts()
        self.node = TuningNode(ROOT)
        self.begun = 0
        self.memo = ProgramMemo() if memo is None else memo
        self.expansions = ProgramMemo()
        self.on_wait = on_wait

    @property
    def num_evals(self) -> int:
        """Number of evaluated candidates: those of nested passes multiply."""
        return self.counts.proposed

    def recording(self, trace: Trace, node: TuningNode | None = None) -> Self:
        """Return a copy of this context that adds the decisions of passes to a trace.

        Args:
            trace: The trace.
            node: Node of the tuning tree for candidates; default: this context's node.
        """
        other = copy.copy(self)
        other.trace = TraceRecorder(trace)
        other.node = node or self.node
        return other

    def record_decisions(self, mod: IRModule, go_on: Callable[[Trace], Trace]) -> IRModule:
        """Record a pass's decisions in this context's trace, and return the program after them.

        Args:
            mod: The program.
            go_on: Function from a trace that ends with the program to an extended trace.
        """
        recorder = self.trace if isinstance(self.trace, TraceRecorder) else None
        is_ahead = recorder is not None and recorder.tuned.out_mod is mod
        best = go_on(recorder.tuned if recorder is not None and is_ahead else Trace(mod))
        if recorder is not None:
            recorder.tuned = best
        return best.out_mod

    def within(self, control: RunControl) -> Self:
        """Return a copy of this context with another budget, a part of this one's."""
        other = copy.copy(self)
        other.control = control
        return other

    def for_candidates(self, name: str, trace: Trace) -> Self:
        """Return a copy of this context for the candidates of a pass, which records no decisions.

        Args:
            name: Name of the pass.
            trace: Trace that candidates extend.
        """
        other = copy.copy(self)
        other.trace = None
        other.node, other.begun = self.node.add(name), trace.size
        return other

    @staticmethod
    def require(ctx: PassContext, pass_name: str) -> TuningContext:
        """Return a pass context as a tuning context.

        Args:
            ctx: Context of a pass.
            pass_name: Name of the pass.

        Raises:
            UsageError: The context has no evaluator.
        """
        if isinstance(ctx, TuningContext):
            return ctx
        raise UsageError(
            f"pass {pass_name} measures candidates, and this context does not say how",
            help="enter a TuningContext(evaluator) around it, such as one with a MeasuringEvaluator",
        )


class TraceRecorder(PassTrace):
    """Adds passes to a trace: a heuristic pass becomes an instruction with one choice.

    Attributes:
        tuned: The trace.
    """

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self.tuned = trace

    def recorded(self, item: TracedPass, before: IRModule, run: Callable[[], IRModule]) -> IRModule:
        """Run a pass and add it to the trace; passes inside of it are not added.

        A tuning pass replaces the trace by one with its own decisions.
        """
        begun = self.tuned
        # A pass inside of another, or on another program (a candidate's), is no decision of this trace.
        if self._is_inside or before is not begun.out_mod:
            return run()
        self._is_inside = True
        try:
            after = run()
        finally:
            self._is_inside = False
        if self.tuned is begun:
            assert isinstance(item, Pass), "only Pass.__call__ records"
            begun.note(HeuristicPass(item).applied, APPLIED, after)
        return after
