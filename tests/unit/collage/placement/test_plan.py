"""Plans: what a search has found, as a file that outlives the run, the weights and the names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.collage_costs import HOST_SPEC, REFERENCE_SPEC, One, Two, parts, some_specs
from tests.collage_programs import program
from tests.mock_cost_estimator import MockCostEstimator

from intarsia.build import build
from intarsia.collage.collage import collage
from intarsia.collage.placement.placement import Placement
from intarsia.collage.placement.plan import Plan, PlanError
from intarsia.collage.placement.program_facts import ProgramFacts
from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model
from intarsia.ir import IRModule, structural_equal, with_fields
from intarsia.measure.candidate_kind import WHOLE, instantiate
from intarsia.measure.measure_input import Candidate
from intarsia.runtime.kernel import TOOLCHAINS
from intarsia.support.errors import MissingToolchainError, UsageError
from intarsia.target import Target
from intarsia.toolchain.this_host import this_host

CHAIN = "def @main(%x: T) { Exp(Relu(Tanh(Sqrt(Exp(Neg(%x)))))) }"
HOST_TARGET = Target.for_toolchain("reference")
ONE = Target.for_toolchain("one")


@pytest.fixture(autouse=True, scope="module")
def toolchains() -> Iterator[None]:
    with TOOLCHAINS.holding("one", One), TOOLCHAINS.holding("two", Two):
        yield


def mixed(mod: IRModule) -> Placement:
    specs = (*some_specs()[:2], REFERENCE_SPEC, HOST_SPEC)
    return collage(mod, specs, MockCostEstimator({"one": 3, "two": 1, "reference": 9})).best


def plan_for(mod: IRModule) -> Plan:
    host = this_host()
    return Plan.of_candidate(
        mod,
        mixed(mod).candidate,
        HOST_TARGET,
        model="chain",
        host=host,
        predicted_seconds=0.25,
        measured_seconds=0.5,
    )


def test_a_plan_is_read_as_it_was_written(tmp_path: Path) -> None:
    mod, path = program(CHAIN), tmp_path / "chain.plan"
    plan = plan_for(mod)
    assert parts(plan.placement.partitions) == [("two", "Neg+Exp+Sqrt"), ("one", "Tanh"), ("two", "Relu+Exp")]
    assert (plan.summary, plan.targets) == ("two 2, one 1", (Target.for_toolchain("two"), ONE))
    plan.write(path)
    again = Plan.read(path)
    assert again == plan
    assert (again.predicted_seconds, again.measured_seconds) == (0.25, 0.5)
    assert again.host_digest == this_host().digest
    assert path.read_text().endswith("}\n")
    assert [each.name for each in tmp_path.iterdir()] == ["chain.plan"]


def test_the_plan_is_the_candidate_that_it_was_made_of() -> None:
    mod = program(CHAIN)
    plan = plan_for(mod)
    assert plan.candidate.digest == mixed(mod).candidate.digest
    after = instantiate(mod, HOST_TARGET, plan.candidate)
    x = np.array([0.5, 0.25], np.float32)
    np.testing.assert_allclose(build(after)(x), build(mod)(x), rtol=1e-6)


def test_one_toolchain_for_all_is_a_plan_as_well(tmp_path: Path) -> None:
    mod, path = program(CHAIN), tmp_path / "whole.plan"
    target = ONE.with_options(threads=2)
    plan = Plan.of_candidate(mod, WHOLE, target)
    plan.write(path)
    again = Plan.read(path)
    assert (again.whole, again.placement.partitions) == (target, ())
    assert (again.candidate, again.summary, again.targets) == (WHOLE, "one", (target,))
    again.check(mod, "it")


def test_other_candidates_are_no_plans() -> None:
    with pytest.raises(UsageError, match="a candidate of kind 'schedule' is no placement"):
        Plan.of_candidate(program(CHAIN), Candidate("schedule", []), ONE)


def test_a_plan_fits_other_weights_names_and_ranges() -> None:
    first, second = (from_onnx(build_model("mnist", seed)) for seed in (0, 1))
    assert not structural_equal(first, second)
    name = first["main"].params[0].name
    main = with_fields(second["main"], attrs=second["main"].attrs.updated(input_ranges=(name, 0, 5)))
    ranged = second.with_function("main", main)
    assert ProgramFacts.of(first).difference(ProgramFacts.of(ranged)) == ""
    renamed = program(CHAIN.replace("%x", "%other"))
    plan_for(program(CHAIN)).check(renamed, "it")


@pytest.mark.parametrize(
    ("text", "difference"),
    [
        ("def @main(%x: T, %y: T) { Add(%x, %y) }", "it has 1 inputs, the model has 2"),
        (
            "def @main(%x: Tensor[(3,), float32]) { Exp(Relu(Tanh(Sqrt(Exp(Neg(%x)))))) }",
            "its input x is Tensor[(2,), float32], that of the model Tensor[(3,), float32]",
        ),
        (
            "def @main(%x: T) { Exp(Exp(Exp(%x))) }",
            "it has Exp 2 times, the model 3; Neg 1 times, the model 0; Relu 1 times, the model 0; "
            "and 2 more operators differ",
        ),
        (
            "def @main(%x: T) { Exp(Tanh(Relu(Sqrt(Exp(Neg(%x)))))) }",
            "its operators are the same, but their attributes, types or connections are not",
        ),
    ],
)
def test_what_differs_in_another_program_is_said(text: str, difference: str) -> None:
    plan = plan_for(program(CHAIN))
    with pytest.raises(PlanError) as caught:
        plan.check(program(text), "a.plan")
    assert caught.value.problem == f"the plan a.plan is for another program (chain): {difference}"


def test_a_toolchain_that_is_missing_here_is_named() -> None:
    mod = program(CHAIN)
    plan = Plan.of_candidate(mod, WHOLE, Target.for_toolchain("tensorrt"))
    with pytest.raises(MissingToolchainError, match=r"the plan a\.plan cannot be carried out here: "):
        plan.check(mod, "a.plan")


def test_partitions_that_do_not_fit_together_are_damage() -> None:
    plan = plan_for(program(CHAIN))
    first, *others = plan.placement.partitions
    twice = replace(plan, placement=Placement((first, first, *others)))
    with pytest.raises(PlanError, match=r"the plan a\.plan is damaged: "):
        twice.check(program(CHAIN), "a.plan")


def test_what_a_newer_version_adds_is_ignored(tmp_path: Path) -> None:
    plan = plan_for(program(CHAIN))
    assert Plan.from_json({**plan.to_json(), "notes": ["by hand"]}, "it") == plan
    assert json.loads(json.dumps(plan.to_json())) == plan.to_json()
