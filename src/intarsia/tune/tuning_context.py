"""What tuning passes run under."""

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
from intarsia.tune.made_once import MadeOnce
from intarsia.tune.trace import Trace
from intarsia.tune.tuning_tree import ROOT, TuningNode


@dataclass(slots=True)
class EvaluationCounts:
    """How much was evaluated.

    Attributes:
        proposed: Candidates that a pass asked the cost of.
        measured: Those of them that were not known before.
        distinct: Those of them that nobody has asked for in this run before, though an earlier run may have
            measured them: so a run that goes on counts as one that was not interrupted.
    """

    proposed: int = 0
    measured: int = 0
    distinct: int = 0


class TuningContext(PassContext):
    """A `PassContext` in which tuning passes find a judge, and which counts (seed relax_pass_infra).

    Attributes:
        evaluator: Says what candidates cost; it knows target, database and measure options.
        counts: How much was evaluated, in this context and in all made of it.
        node: Where what is tried is noted; print it.
        begun: How many decisions were made before the pass that runs.
        made: What was made of programs, such as those after choices.
        expansions: What substitutions make of programs; it is large.
        on_wait: Called with a sentence on the process that holds this host, if there is a wait; or None.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        made: MadeOnce | None = None,
        *,
        on_wait: Callable[[str], None] | None = None,
        **settings: Any,
    ) -> None:
        """A context.

        Args:
            evaluator: Says what candidates cost.
            made: Choices that another context with the same settings made for the same program.
            on_wait: Value of the attribute `on_wait`.
            settings: As those of `PassContext`.
        """
        super().__init__(**settings)
        self.evaluator = evaluator
        self.counts = EvaluationCounts()
        self.node = TuningNode(ROOT)
        self.begun = 0
        self.made = MadeOnce() if made is None else made
        self.expansions = MadeOnce()
        self.on_wait = on_wait

    @property
    def num_evals(self) -> int:
        """How many candidates were proposed: the contract of how passes combine."""
        return self.counts.proposed

    def on(self, trace: Trace, node: TuningNode | None = None) -> Self:
        """The same context in trace mode: what passes do is added to a trace.

        Args:
            trace: The trace.
            node: Where what is tried is noted; default: where it was.
        """
        other = copy.copy(self)
        other.trace = TraceRecorder(trace)
        other.node = node or self.node
        return other

    def continued(self, mod: IRModule, go_on: Callable[[Trace], Trace]) -> IRModule:
        """A program after the decisions of a pass, which a trace of this context then has as well.

        Args:
            mod: The program.
            go_on: Makes of a trace that leads to it a longer one.
        """
        recorder = self.trace if isinstance(self.trace, TraceRecorder) else None
        is_ahead = recorder is not None and recorder.tuned.out_mod is mod
        best = go_on(recorder.tuned if recorder is not None and is_ahead else Trace(mod))
        if recorder is not None:
            recorder.tuned = best
        return best.out_mod

    def within(self, name: str, trace: Trace) -> Self:
        """The same context for the candidates of a pass, in which what passes do is added to no trace.

        Args:
            name: Of the pass.
            trace: Where candidates begin.
        """
        other = copy.copy(self)
        other.trace = None
        other.node, other.begun = self.node.add(name), trace.size
        return other

    @staticmethod
    def of(ctx: PassContext, who: str) -> TuningContext:
        """A context as one for tuning.

        Args:
            ctx: What a pass runs under.
            who: The pass.

        Raises:
            UsageError: It has no evaluator.
        """
        if isinstance(ctx, TuningContext):
            return ctx
        raise UsageError(
            f"pass {who} measures candidates, and this context does not say how",
            help="enter a TuningContext(evaluator) around it, such as one with a MeasuringEvaluator",
        )


class TraceRecorder(PassTrace):
    """Adds to a trace what is done: heuristic passes become instructions with one choice.

    Attributes:
        tuned: The trace.
    """

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self.tuned = trace

    def recorded(self, item: TracedPass, before: IRModule, run: Callable[[], IRModule]) -> IRModule:
        """Run a pass and add it; the passes that it runs itself are not added.

        A tuning pass puts another trace in the place of this one's, with its own decisions.
        """
        begun = self.tuned
        if self._is_inside or before is not begun.out_mod:  # of a pass, or on another program
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
