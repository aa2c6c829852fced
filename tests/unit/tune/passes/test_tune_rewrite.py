"""TuneRewrite on made-up costs: what it finds, how much it tries, and that its traces replay."""

from __future__ import annotations

import subprocess
import sys
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.pass_checks import assert_same_results, operator_counts
from tests.tuning_passes import CostTable, NoteHeuristic, layout

from intarsia.ir import Call, IRModule, Op, post_order, structural_digest, structural_equal
from intarsia.ir.parser import parse_module
from intarsia.ir.printer import print_module
from intarsia.op import infer_types, verify
from intarsia.support.errors import UsageError
from intarsia.transform import get_pass
from intarsia.tune import Trace, TuningContext
from intarsia.tune.passes import TuneRewrite, rewrite_expansion
from intarsia.tune.passes.rewrite_estimate import estimated_cost
from intarsia.tune.run_control import RunControl
from intarsia.tune.strategy import SearchLimits
from intarsia.tune.substitution import apply_replacement
from intarsia.tune.tuning_context import TraceRecorder

ENCLOSED = """
def @main(%x: Tensor[(2, 3), float32]) {
  Transpose(Sigmoid(Tanh(Transpose(%x, perm=[1, 0]))), perm=[1, 0])
}
"""
MOVING = ("elementwise_behind_transpose", "merge_transposes")


def program(text: str = ENCLOSED, *constants: np.ndarray[Any, Any]) -> IRModule:
    return infer_types(parse_module(text, constants))


def operators(mod: IRModule) -> list[str]:
    return [
        each.op.name for each in post_order(mod["main"]) if isinstance(each, Call) and isinstance(each.op, Op)
    ]


def uphill(mod: IRModule) -> float:
    """Each step of the outer transpose towards the inner one costs; where they meet, half is gained."""
    names = operators(mod)
    if "Transpose" not in names:
        return 5.0
    return 10 + 0.3 * names[::-1].index("Transpose")


def tuned(made: TuneRewrite, mod: IRModule, ctx: TuningContext) -> Trace:
    recording = ctx.recording(Trace(mod))
    made(mod, recording)
    assert isinstance(recording.trace, TraceRecorder)
    return recording.trace.tuned


def test_two_steps_that_cost_are_taken_with_alpha_above_one_only() -> None:
    mod = program()
    patient, greedy = (TuningContext(CostTable(uphill)) for _ in range(2))
    best = TuneRewrite(rules=MOVING, alpha=1.1)(mod, patient)
    assert operators(best) == ["Tanh", "Sigmoid"]
    assert patient.num_evals == 4  # the program, two steps, and the gain
    verify(best)
    assert_same_results(mod, best)
    assert TuneRewrite(rules=MOVING, alpha=1)(mod, greedy) is mod
    assert greedy.num_evals == 2


def test_programs_that_were_seen_are_not_evaluated_again() -> None:
    both_ways = ("elementwise_behind_transpose", "elementwise_before_transpose")
    mod = program("def @main(%x: Tensor[(2, 3), float32]) { Transpose(Relu(%x), perm=[1, 0]) }")
    table = CostTable()
    ctx = TuningContext(table)
    TuneRewrite(rules=both_ways)(mod, ctx)
    assert ctx.counts.proposed == ctx.counts.measured == 2


def test_each_step_is_a_decision_and_the_trace_replays() -> None:
    mod = program()
    trace = tuned(TuneRewrite(rules=MOVING, alpha=1.1), mod, TuningContext(CostTable(uphill)))
    assert [step.decision for step in trace.steps] == [
        "elementwise_behind_transpose at 3",
        "elementwise_behind_transpose at 2",
        "merge_transposes at 1",
    ]
    assert trace.verify()
    assert trace.perf == 5.0
    assert structural_equal(trace.replay(), trace.out_mod)
    assert structural_equal(Trace.from_json(trace.to_json(), mod).out_mod, trace.out_mod)


@pytest.mark.slow
def test_a_trace_replays_in_a_fresh_process(tmp_path: Path) -> None:
    mod = program()
    trace = tuned(TuneRewrite(rules=MOVING, alpha=1.1), mod, TuningContext(CostTable(uphill)))
    (tmp_path / "trace.json").write_text(trace.to_json())
    (tmp_path / "program.txt").write_text(print_module(mod).text)
    script = f"""
import intarsia.tune.passes
from pathlib import Path
from intarsia.ir import structural_digest
from intarsia.ir.parser import parse_module
from intarsia.tune import Trace
folder = Path({str(tmp_path)!r})
mod = parse_module((folder / "program.txt").read_text())
print(structural_digest(Trace.from_json((folder / "trace.json").read_text(), mod).out_mod))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == structural_digest(trace.out_mod)


@pytest.mark.parametrize(("trials", "expected"), [(1, 1), (2, 2), (3, 3), (4, 4), (50, 4)])
def test_it_stops_after_so_many_trials(trials: int, expected: int) -> None:
    ctx = TuningContext(CostTable(uphill))
    best = TuneRewrite(rules=MOVING, alpha=1.1, limits=SearchLimits(trials=trials))(program(), ctx)
    assert ctx.num_evals == expected
    assert ("Transpose" in operators(best)) == (trials < 4)


def test_it_stops_after_so_many_expansions_and_when_it_is_told_to() -> None:
    few = TuningContext(CostTable(uphill))
    TuneRewrite(rules=MOVING, alpha=1.1, max_expansions=2)(program(), few)
    assert few.num_evals == 3
    none, mod = TuningContext(CostTable(uphill), control=RunControl(should_stop=lambda: True)), program()
    assert TuneRewrite(rules=MOVING, alpha=1.1)(mod, none) is mod
    assert none.num_evals == 1


def test_a_narrow_search_comes_back_for_what_it_left() -> None:
    text = "def @main(%a: Tensor[(2, 3), float32]) { Relu(Transpose(Relu(Transpose(Relu(%a))))) }"
    counts = []
    for width in (1, 8):
        ctx = TuningContext(CostTable())
        TuneRewrite(width=width)(program(text), ctx)
        counts.append(ctx.counts.measured)
    assert counts[0] == counts[1] > 4


def test_what_promises_most_is_evaluated_first() -> None:
    text = """
    def @main(%a: Tensor[(64, 64), float32], %b: Tensor[(64, 64), float32], %c: Tensor[(64, 1), float32]) {
      MatMul(MatMul(Neg(Sub(%a, %b)), %b), %c)
    }
    """
    rules = ("negated_difference", "associate_matmul_right")
    first: dict[bool, IRModule] = {}
    for is_estimated in (True, False):
        table = CostTable()
        made = TuneRewrite(rules=rules, is_estimated=is_estimated, limits=SearchLimits(trials=2), width=1)
        made(program(text), TuningContext(table))
        first[is_estimated] = table.modules[1]
    assert "Neg" in operators(first[True])  # products with one column are much cheaper
    assert "Neg" not in operators(first[False])
    assert estimated_cost(first[True]) < estimated_cost(first[False]) < estimated_cost(program(text))


def test_passes_that_candidates_go_through_are_part_of_the_result() -> None:
    mod = program()
    ctx = TuningContext(CostTable(uphill))
    trace = tuned(TuneRewrite((NoteHeuristic(),), MOVING, 1.1), mod, ctx)
    assert ctx.num_evals == 4
    assert [step.instruction.name for step in trace.steps] == ["TuneRewrite"] * 3 + ["NoteHeuristic"]
    assert trace.out_mod.attrs["heuristic"] == "yes"


def test_tuning_passes_inside_multiply() -> None:
    ctx = TuningContext(CostTable(uphill))
    trace = tuned(TuneRewrite((layout(),), MOVING, 1.1), program(), ctx)
    assert ctx.num_evals == 4 * 3
    assert [step.instruction.name for step in trace.steps] == ["TuneRewrite"] * 3 + ["Decide layout"]


def test_candidates_that_fail_are_never_gone_on_from() -> None:
    ctx = TuningContext(CostTable(lambda mod: inf if operators(mod)[-1] != "Transpose" else 1.0))
    mod = program()
    assert TuneRewrite(rules=MOVING, alpha=100)(mod, ctx) is mod
    assert ctx.num_evals == 2


def test_parallel_products_become_one_with_a_cost_of_calls() -> None:
    text = """
    def @main(%a: Tensor[(4, 8), float32]) {
      (Relu(MatMul(%a, meta[Constant][0])), MatMul(%a, meta[Constant][1]))
    }
    """
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal((8, size)).astype(np.float32) for size in (3, 5)]
    mod = program(text, *weights)
    table = CostTable(lambda each: operators(each).count("MatMul") + 1.0)
    best = TuneRewrite(rules=("merge_parallel_products",))(mod, TuningContext(table))
    assert operator_counts(best)["MatMul"] == 1
    assert_same_results(mod, best)


@pytest.mark.parametrize(("most", "count"), [(1.5, 1), (100.0, 2)])
def test_what_is_estimated_to_cost_too_much_is_not_tried(most: float, count: int) -> None:
    weight = np.ones((8, 8, 1, 1), np.float32)
    mod = program("def @main(%a: Tensor[(1, 8, 9, 9), float32]) { Conv(%a, meta[Constant][0]) }", weight)
    ctx = TuningContext(CostTable(lambda each: 2.0 - operator_counts(each)["Conv"]))
    TuneRewrite(rules=("enlarge_kernel",), most_estimated=most)(mod, ctx)
    assert ctx.counts.distinct == count


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0.9}, "alpha is 0.9"),
        ({"most_estimated": 0.5}, "most_estimated is 0.5"),
        ({"width": 0}, "tries nothing"),
        ({"max_expansions": 0}, "tries nothing"),
        ({"rules": ["no_such_rule"]}, "unknown substitution rule 'no_such_rule'"),
    ],
)
def test_mistakes(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        TuneRewrite(**options)
    assert message in str(caught.value)


def test_it_is_found_by_name() -> None:
    assert get_pass("TuneRewrite", alpha=1.2) == TuneRewrite(alpha=1.2)


def test_a_substitution_that_raises_is_a_failed_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a rule builds may not fit; the other substitutions are tried all the same."""
    mod, ctx = program(), TuningContext(CostTable(uphill))
    real, calls = apply_replacement, []

    def failing_once(*args: Any) -> IRModule:
        calls.append(args)
        if len(calls) == 1:
            raise ValueError("it does not fit")
        return real(*args)

    monkeypatch.setattr(rewrite_expansion, "apply_replacement", failing_once)
    trace = tuned(TuneRewrite(most_estimated=inf), mod, ctx)
    assert trace.perf is not None
    assert "ValueError: it does not fit" in str(ctx.node)
    assert len(calls) > 1
