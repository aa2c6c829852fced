"""Candidates whose decisions end with a placement."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.collage_programs import program

import intarsia as ia
from intarsia.collage.placement.partitioned import partitioned
from intarsia.collage.placement.placement import Partition, Placement
from intarsia.collage.placement.plan import Plan
from intarsia.ir import structural_digest
from intarsia.measure.candidate_kind import AS_IT_IS, WHOLE, instantiate
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.target import Target
from intarsia.tune import Choice
from intarsia.tune.placed_candidate import with_placement
from intarsia.tune.target_options import set_target_options
from intarsia.tune.tuned_candidate import decisions_and_base, tuned_candidate

MODEL = program("def @main(%x: T) { Tanh(Neg(Relu(%x))) }")
ENGINE, OTHER = "cpu -toolchain=onnxruntime", "cpu -toolchain=openvino"
SIMPLER = Choice("SimplifyExpr")
WHOLE_CHOICE = Choice("PartitionWhole", {"target": ENGINE})
PARTS = (Partition("main", ENGINE, (1, 2), "Relu+Neg"), Partition("main", OTHER, (3,), "Tanh"))
PLACED = Choice(partitioned, {"partitions": [each.to_json() for each in PARTS]})
ONE_THREAD = Choice(set_target_options, {"toolchain": "onnxruntime", "options": {"threads": 1}})
SOME = Choice(
    set_target_options, {"toolchain": "onnxruntime", "options": {"threads": 1}, "functions": ["main"]}
)


def item(*choices: Choice) -> MeasureInput:
    decisions = tuple((f"number {place}", choice) for place, choice in enumerate(choices))
    return MeasureInput(Workload(MODEL), Target(OTHER), tuned_candidate(decisions, AS_IT_IS))


def program_of(found: MeasureInput) -> str:
    return structural_digest(instantiate(MODEL, found.target, found.candidate))


def transforms(found: MeasureInput) -> list[object]:
    return [choice.transform for _, choice in decisions_and_base(found.candidate)[0]]


@pytest.mark.parametrize(
    ("choices", "target", "before"),
    [
        ([WHOLE_CHOICE], ENGINE, []),
        ([SIMPLER, WHOLE_CHOICE], ENGINE, ["SimplifyExpr"]),
        ([WHOLE_CHOICE, ONE_THREAD], f"{ENGINE} -threads=1", []),
    ],
    ids=["whole", "behind a rewrite", "with options"],
)
def test_the_whole_on_a_target(choices: Sequence[Choice], target: str, before: list[str]) -> None:
    found = with_placement(item(*choices))
    assert (found.target, transforms(found)) == (Target(target), before)
    assert decisions_and_base(found.candidate)[1].digest == WHOLE.digest
    plan = Plan.of_candidate(MODEL, found.candidate, found.target)
    assert plan.whole == found.target
    assert plan.candidate.digest == found.candidate.digest


@pytest.mark.parametrize("after", [[], [ONE_THREAD]], ids=["as placed", "with options"])
def test_parts(after: Sequence[Choice]) -> None:
    found = with_placement(item(SIMPLER, PLACED, *after))
    placement = Placement.of_candidate(decisions_and_base(found.candidate)[1])
    first = f"{ENGINE} -threads=1" if after else ENGINE
    assert [each.target for each in placement.partitions] == [first, OTHER]
    assert program_of(found) == program_of(item(SIMPLER, PLACED, *after))


@pytest.mark.parametrize(
    "choices", [[PLACED, SIMPLER], [PLACED, SOME]], ids=["something behind it", "options of one function"]
)
def test_others_stay(choices: Sequence[Choice]) -> None:
    given = item(*choices)
    assert with_placement(given) is given
    plan = Plan.of_candidate(MODEL, given.candidate, given.target)
    again = Plan.from_json(plan.to_json(), "it")
    assert (again.whole, again.summary) == (None, "host")
    assert again.candidate.digest == given.candidate.digest


def test_what_tells_nothing_of_a_placement_stays() -> None:
    given = MeasureInput(Workload(MODEL), Target(ENGINE), WHOLE)
    assert with_placement(given) is given


@pytest.mark.processes
def test_tune_runs_a_placement_as_a_tuning_pass() -> None:
    """Both engines alone are baselines already: what the pass finds is one of them, or a mix."""
    result = ia.tune(MODEL, budget="20s", targets=[ENGINE, OTHER], passes=["TunePlacement"], partitions=False)
    names = [record.name for record in result.candidates]
    assert {"onnxruntime", "openvino"} <= set(names)
    assert len(set(names)) == len(names)
    (tree,) = result.explanation.tuning
    assert tree.name == "tuning"
    assert [child.name for child in tree.children][-1] == "TunePlacement"
