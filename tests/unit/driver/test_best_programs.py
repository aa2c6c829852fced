"""Which programs of a tuning tree take part in the race."""

from __future__ import annotations

import pytest

from intarsia.collage.placement.partitioned import partitioned
from intarsia.collage.placement.placement import Partition
from intarsia.driver.pipeline import best_programs, entrant_name
from intarsia.ir import DType, Function, IRModule, TensorType, Var
from intarsia.measure.candidate_kind import AS_IT_IS
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.op import call
from intarsia.target.reference import REFERENCE_TARGET
from intarsia.tune import Choice, Instruction
from intarsia.tune.kernels.decide_kernels import decide_kernels
from intarsia.tune.trace import Trace
from intarsia.tune.tuned_candidate import tuned_candidate
from intarsia.tune.tuning_tree import TuningNode


def chain(*operators: str) -> IRModule:
    x = Var("x", checked_type=TensorType((2,), DType.FLOAT32))
    body = x
    for operator in operators:
        body = call(operator, body)  # type: ignore[assignment]
    return IRModule.from_expr(Function((x,), body))


MODEL = chain("Relu", "Neg", "Relu", "Neg")
PART = chain("Relu", "Neg")


def evaluated(mod: IRModule, after: IRModule, seconds: float, *, is_placed: bool = True) -> Trace:
    trace = Trace(mod)
    if after is not mod:
        trace.note(Instruction("rewrite", {"On": Choice("SimplifyExpr")}), "On", after)
    if is_placed:
        whole = Choice("PartitionWhole", {"target": "cpu -toolchain=reference"})
        trace.add(Instruction("placement", {"reference": whole}), "reference")
    trace.perf = seconds
    return trace


def test_parts_of_the_program_do_not_take_part() -> None:
    root = TuningNode("tuning")
    subgraphs = root.add("TuneSubgraphs")
    part = subgraphs.add("2 parts of 2 operators").add("TuneRewrite")
    part.note([evaluated(PART, PART, 1e-6), evaluated(PART, chain("Relu"), 5e-7)], 0)
    part.note([evaluated(PART, chain("Neg"), 6e-7)], 0)
    unchanged = evaluated(MODEL, MODEL, 4e-3)
    faster = evaluated(MODEL, chain("Relu", "Neg", "Abs"), 3e-3)
    fastest = evaluated(MODEL, chain("Relu", "Abs", "Neg"), 2e-3)
    unplaced = evaluated(MODEL, chain("Abs"), 1e-3, is_placed=False)
    subgraphs.note([unchanged, faster, fastest, unplaced], 0)
    assert best_programs(root, MODEL) == [fastest]


def test_a_slower_program_does_not_take_part() -> None:
    root = TuningNode("tuning")
    slower = evaluated(MODEL, chain("Relu", "Abs"), 4.2e-3)
    root.note([evaluated(MODEL, MODEL, 4e-3), slower], 0)
    assert [trace.perf for trace in best_programs(root, MODEL)] == [4e-3]


NATIVE = "cpu -toolchain=native"
WHOLE_NATIVE = Choice("PartitionWhole", {"target": NATIVE})
PARTS = [Partition("main", NATIVE, (1,), "Relu"), Partition("main", "cpu -toolchain=openvino", (2,), "Neg")]
KERNELS = Choice(decide_kernels, {"settings": {"key": {"threads": "1"}}})


@pytest.mark.parametrize(
    ("choices", "name"),
    [
        ([WHOLE_NATIVE], "native tuned"),
        ([Choice("SimplifyExpr"), WHOLE_NATIVE], "native tuned"),
        ([WHOLE_NATIVE, KERNELS], "native tuned"),
        (
            [Choice(partitioned, {"partitions": [part.to_json() for part in PARTS]}), KERNELS],
            "native 1, openvino 1 tuned",
        ),
    ],
    ids=["whole", "behind a rewrite", "before decisions on kernels", "parts"],
)
def test_names_have_the_toolchains_of_the_placement(choices: list[Choice], name: str) -> None:
    decisions = tuple((f"number {place}", choice) for place, choice in enumerate(choices))
    item = MeasureInput(Workload(MODEL), REFERENCE_TARGET, tuned_candidate(decisions, AS_IT_IS))
    assert entrant_name(item, []) == name
    assert entrant_name(item, [name]) == f"{name} (2)"
