"""Choices, instructions and traces: decisions as data."""

from __future__ import annotations

import json
import subprocess
import sys
from math import inf

import pytest
from tests.parallel_programs import convolutions, image
from tests.parallel_programs import program as results_of
from tests.tuning_passes import NoteHeuristic, decided, only_if, program

from intarsia.ir import IRModule, structural_digest
from intarsia.passes import InferType
from intarsia.support.errors import UsageError
from intarsia.tune import Choice, Instruction, Trace, get_trace, transformation
from intarsia.tune.heuristic_pass import HeuristicPass


def branches() -> IRModule:
    x = image()
    return InferType()(results_of(x, *convolutions(x)))


COMBINE = Instruction("combine", {"On": Choice("CombineParallelConv2D"), "Off": Choice()})
LAYOUT = Instruction("layout", [Choice("ConvertLayout", {"layout": "NHWC"}), Choice()])


def test_a_choice_is_a_transformation_by_name() -> None:
    mod = program()
    assert Choice().apply(mod) is mod
    assert Choice(decided, {"what": "fact", "value": "1"}).apply(mod).attrs["fact"] == "1"
    assert Choice(decided) == Choice("decided")


def test_a_pass_is_a_transformation_with_its_options_and_what_it_requires() -> None:
    x = image()
    mod = results_of(x, *convolutions(x))  # without types
    after = Choice("CombineParallelConv2D", {"min_num_branches": 3}).apply(mod)
    assert "Split" in str(after)
    assert "Split" not in str(Choice("CombineParallelConv2D", {"min_num_branches": 4}).apply(mod))


def test_a_choice_that_is_not_open_changes_nothing() -> None:
    choice = Choice(decided, {"what": "a", "value": "1"}, only_if, {"what": "b", "value": "2"})
    mod = program()
    assert choice.apply(mod) is mod
    open_mod = decided(mod, "b", "2")
    assert choice.apply(open_mod).attrs["a"] == "1"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Choice(lambda mod: mod), "a lambda has no name"),
        (lambda: Choice(branches), "not registered"),
        (lambda: Choice("nothing").apply(program()), "unknown transformation 'nothing'"),
        (lambda: Choice(args={"x": object()}), "not plain data"),
        (lambda: Choice(args={"x": inf}), "not plain data"),
        (lambda: Choice(constraint="nobody").is_open(program()), "unknown constraint 'nobody'"),
        (lambda: Instruction("empty", {}), "needs choices"),
        (lambda: Instruction("wrong", [1]), "needs choices"),  # type: ignore[list-item]
        (lambda: COMBINE.apply(program(), "Maybe"), "it has: On, Off"),
        (lambda: get_trace(1), "begins with an IRModule"),  # type: ignore[arg-type]
        (lambda: Trace.from_json("[]", program()), "not a trace"),
    ],
)
def test_mistakes(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(UsageError) as caught:
        make()
    assert message in f"{caught.value}"


def test_a_transformation_that_returns_no_module_is_refused() -> None:
    from intarsia.tune.transformations import holding_transformation

    with (
        holding_transformation("nothing", lambda mod: None),  # type: ignore[arg-type,return-value]
        pytest.raises(UsageError, match="returned NoneType"),
    ):
        Choice("nothing").apply(program())


def test_names_are_taken_once() -> None:
    with pytest.raises(UsageError, match="already registered"):

        @transformation
        def decided(mod: IRModule) -> IRModule:
            return mod


def test_printing() -> None:
    assert str(COMBINE) == "combine:\n  On: CombineParallelConv2D\n  Off: identity"
    choice = Choice(decided, {"what": "a", "value": "1"}, only_if, {"what": "b", "value": "2"})
    assert str(choice) == 'decided{what="a", value="1"} if only_if{what="b", value="2"}'
    trace = Trace(branches())
    assert str(trace) == "no decision"
    trace.add(COMBINE, "On")
    assert str(trace) == "combine: On"
    trace.perf = 0.0125
    assert str(trace) == "combine: On\n-> 12.5 ms"
    trace.perf, trace.fate = inf, "crash: out of luck"
    assert str(trace) == "combine: On\n-> crash: out of luck"


def test_a_trace_grows_and_forgets_what_it_cost() -> None:
    trace = Trace(branches())
    trace.add(COMBINE, "On")
    trace.perf = 1.0
    other = trace.copy()
    other.add(LAYOUT, "0")
    assert (trace.size, trace.perf) == (1, 1.0)
    assert (other.size, other.perf) == (2, None)
    assert trace.out_mod is not other.out_mod
    assert trace.in_mod is other.in_mod
    assert other.verify()
    assert structural_digest(other.replay()) == structural_digest(other.out_mod)


@pytest.mark.slow
def test_a_trace_is_replayed_in_another_process_to_the_same_program() -> None:
    trace = Trace(branches())
    trace.add(COMBINE, "On")
    trace.add(LAYOUT, "0")
    trace.perf = inf
    text = trace.to_json()
    script = """
import sys
from tests.unit.tune.test_trace import branches
from intarsia.ir import structural_digest
from intarsia.tune import Trace
trace = Trace.from_json(sys.stdin.read(), branches())
print(structural_digest(trace.out_mod), trace.perf, trace.size)
"""
    found = subprocess.run(
        [sys.executable, "-c", script], input=text, capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == [structural_digest(trace.out_mod), "inf", "2"]


def test_a_trace_of_another_program_or_of_other_passes_is_refused() -> None:
    trace = Trace(branches())
    trace.add(COMBINE, "On")
    with pytest.raises(UsageError, match="another program"):
        Trace.from_json(trace.to_json(), program())
    changed = json.loads(trace.to_json())
    changed["steps"][0][1] = "Off"
    with pytest.raises(UsageError, match="lead to another program"):
        Trace.from_json(json.dumps(changed), branches())


def test_the_options_of_a_pass_survive_as_a_choice() -> None:
    item = NoteHeuristic(value="no", among=("no", "maybe"))
    choice = HeuristicPass(item).choice
    assert Choice.from_json(json.loads(json.dumps(choice.to_json()))) == choice
    assert choice.apply(program()).attrs["heuristic"] == "no"
