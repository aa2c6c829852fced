"""Placements: plain data and back, and what they make of programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from tests.collage_costs import HOST_SPEC, One, acme
from tests.collage_programs import main_graph, program
from tests.mock_cost_estimator import MockCostEstimator
from tests.pass_checks import assert_same_results

from intarsia.collage.collage import collage
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.placement.placement import (
    KIND,
    Composite,
    Partition,
    Placement,
    instantiate_placement,
    stable_nodes,
)
from intarsia.ir import Call, Constant, Function, IRModule, Op, Var, structural_equal
from intarsia.ir.parser import parse_module
from intarsia.ir.printer import print_module
from intarsia.measure.candidate_kind import CANDIDATE_KINDS, WHOLE
from intarsia.measure.measure_input import Candidate, PlainData
from intarsia.op import call, infer_types, verify
from intarsia.runtime.kernel import TOOLCHAINS
from intarsia.support.errors import UsageError
from intarsia.target import Target

ONE = "cpu -toolchain=one"
BRANCHES = """
def @main(%x: T, %f: Tensor[(), bool]) {
  %0 = Relu(%x);
  %1 = if (%f) { Relu(Abs(%0)) } else { let %v: T = Tanh(%x); Add(%v, Exp(%v)) };
  @other(Add(%1, %0))
}
def @other(%y: T) { Neg(Sigmoid(%y)) }
def @compiled(%z: T) attributes {Compiler="one", target="cpu -toolchain=one", global_symbol="compiled"} {
  Relu(%z)
}
"""


@pytest.fixture(autouse=True)
def toolchains() -> Iterator[None]:
    with TOOLCHAINS.holding("one", One):
        yield


def numbers(mod: IRModule, function: str, *names: str) -> tuple[int, ...]:
    """The stable number of the only call of each operator."""
    graph = DataflowGraph.of(mod.graph_functions[mod.global_var(function)])
    found: dict[str, int] = {}
    for number, index in enumerate(stable_nodes(graph)):
        expr = graph[index].expr
        if isinstance(expr, Call) and isinstance(expr.op, Op):
            assert expr.op.name not in found or expr.op.name not in names
            found[expr.op.name] = number
    return tuple(sorted(found[name] for name in names))


def part(mod: IRModule, function: str, *names: str, target: str = ONE) -> Partition:
    return Partition(function, target, numbers(mod, function, *names), "+".join(names))


def compiled(mod: IRModule) -> dict[str, Function]:
    """The functions that have a toolchain."""
    return {var.name: one for var, one in mod.graph_functions.items() if "Compiler" in one.attrs}


def operators(function: Function) -> set[str]:
    graph = DataflowGraph.of(function)
    return {
        node.expr.op.name for node in graph if isinstance(node.expr, Call) and isinstance(node.expr.op, Op)
    }


def test_plain_data_and_back() -> None:
    inner = Partition("main", ONE, (3, 5, 6), "Conv+Relu+Add", (Composite("one.conv_relu", (3, 5)),))
    placement = Placement((inner, Partition("other", "cpu -toolchain=one -threads=2", (0,), "Relu")))
    data: list[PlainData] = [
        {
            "function": "main",
            "target": ONE,
            "nodes": "3,5..6",
            "label": "Conv+Relu+Add",
            "composites": [{"name": "one.conv_relu", "nodes": "3,5"}],
        },
        {
            "function": "other",
            "target": "cpu -toolchain=one -threads=2",
            "nodes": "0",
            "label": "Relu",
            "composites": [],
        },
    ]
    assert placement.candidate.trace == data
    assert placement.candidate.kind == KIND
    assert Placement.of_candidate(placement.candidate) == placement
    assert placement.summary == "one 2"
    assert Placement(()).summary == "host"


GOOD: dict[str, PlainData] = {
    "function": "main",
    "target": ONE,
    "nodes": "0",
    "label": "Relu",
    "composites": [],
}


@pytest.mark.parametrize(
    "change",
    [
        {"nodes": ""},
        {"nodes": "1-2"},
        {"nodes": "-1"},
        {"nodes": None},
        {"composites": None},
        {"composites": [{"name": "x"}]},
        {"composites": ["x"]},
    ],
)
def test_malformed_data_is_refused(change: Mapping[str, Any]) -> None:
    with pytest.raises(UsageError, match="a partition of a plan is malformed"):
        Partition.from_json({**GOOD, **change})
    with pytest.raises(UsageError, match="malformed"):
        Placement.of_candidate(Candidate(KIND, [{**GOOD, **change}]))


@pytest.mark.parametrize("item", [None, "main", 3, {}, {"function": "main"}])
def test_what_is_no_partition_is_refused(item: Any) -> None:
    with pytest.raises(UsageError, match="malformed"):
        Placement.of_candidate(Candidate(KIND, [GOOD, item]))


def test_candidates_of_other_kinds_are_no_placements() -> None:
    with pytest.raises(UsageError, match="a candidate of kind 'whole' is no placement"):
        Placement.of_candidate(WHOLE)


def test_partitions_in_branches_lets_and_other_functions() -> None:
    mod = program(BRANCHES)
    placement = Placement(
        (
            part(mod, "main", "Abs"),
            part(mod, "main", "Tanh"),
            part(mod, "main", "Exp"),
            part(mod, "other", "Sigmoid", "Neg"),
        )
    )
    after = placement.applied(mod)
    verify(after)
    made = {name: operators(function) for name, function in compiled(after).items()}
    assert made == {
        "collage_one_Abs": {"Abs"},
        "collage_one_Tanh": {"Tanh"},
        "collage_one_Exp": {"Exp"},
        "collage_one_Sigmoid_Neg": {"Sigmoid", "Neg"},
        "compiled": {"Relu"},
    }
    assert after["compiled"] is mod["compiled"]
    for name, function in compiled(after).items():
        assert (function.attrs["target"], function.attrs["global_symbol"]) == (ONE, name)
    assert {*placement.function_names(mod), "compiled"} == set(made)
    for flag in (True, False):
        inputs = {"x": np.array([1, -2], np.float32), "f": np.array(flag)}
        assert_same_results(mod, after, inputs)


def test_a_whole_if_goes_with_what_is_inside() -> None:
    mod = program(BRANCHES)
    graph = main_graph(mod)
    choice = next(node.index for node in graph if type(node.expr).__name__ == "If")
    unit = graph.unit(choice)
    nodes = tuple(number for number, index in enumerate(stable_nodes(graph)) if index in unit)
    after = Placement((Partition("main", ONE, nodes, "if"),)).applied(mod)
    verify(after)
    assert operators(compiled(after)["collage_one_if"]) >= {"Abs", "Tanh", "Exp"}
    for flag in (True, False):
        assert_same_results(mod, after, {"x": np.array([1, -2], np.float32), "f": np.array(flag)})


def test_recursion() -> None:
    mod = program("""
    def @main(%x: T, %n: Tensor[(2,), float32]) { @down(%x, %n) }
    def @down(%x: T, %n: T) -> T {
      %0 = ReduceSum(%n, (), keepdims=0);
      %1 = Cast(%0, to=9);
      if (%1) { @down(Neg(%x), Sub(%n, %n)) } else { Relu(%x) }
    }
    """)
    placement = Placement(tuple(part(mod, "down", name) for name in ("Neg", "Sub", "Relu")))
    after = placement.applied(mod)
    verify(after)
    assert len(compiled(after)) == 3
    for value in (0, 1):
        inputs = {"x": np.array([1, -2], np.float32), "n": np.array([0, value], np.float32)}
        assert_same_results(mod, after, inputs)


def test_numbers_do_not_depend_on_how_constants_are_stored() -> None:
    """One constant that is used twice, or two equal ones: the text of the program stores one."""
    data = np.array([1, 2], np.float32)
    x = Var("x", checked_type=program("def @main(%x: T) { %x }")["main"].params[0].checked_type)
    made = []
    for first, second in [(Constant(data), Constant(data)), (shared := Constant(data), shared)]:
        body = call("Relu", call("Mul", call("Add", x, first), second))
        mod = IRModule.from_expr(Function((x,), body))
        made.append((mod, part(mod, "main", "Mul", "Relu")))
    (one, first_part), (other, second_part) = made
    assert first_part == second_part
    assert structural_equal(one, other)
    text = print_module(one)
    parsed = infer_types(parse_module(text.text, text.constants))
    assert structural_equal(Placement((first_part,)).applied(parsed), Placement((first_part,)).applied(one))


def test_composites_are_functions_inside() -> None:
    mod = program("def @main(%x: T) { Relu(Add(%x, Relu(%x))) }")
    result = collage(mod, (acme(), HOST_SPEC), MockCostEstimator({"acme": 1}))
    (only,) = result.best.partitions
    assert sorted(each.name for each in only.composites) == ["acme.add", "acme.relu", "acme.relu"]
    after = result.best.applied(mod)
    assert str(after).count('Composite="acme.add"') == 1
    assert Placement.of_candidate(result.best.candidate) == result.best


def test_no_partitions_change_nothing() -> None:
    mod = program(BRANCHES)
    assert Placement(()).applied(mod) is mod


def test_a_partition_without_toolchain_is_left_to_build() -> None:
    mod = program("def @main(%x: T) { Relu(Abs(%x)) }")
    plain = Placement((part(mod, "main", "Abs", target="cpu"),))
    assert plain.summary == "native 1"
    after = plain.applied(mod)
    verify(after)
    assert compiled(after) == {}
    assert "Primitive=1" in str(after)
    assert_same_results(mod, after)


def test_names_that_are_taken_are_not_used_again() -> None:
    mod = program("def @main(%x: T) { @collage_one_Relu(Relu(%x)) } def @collage_one_Relu(%x: T) { Abs(%x) }")
    after = Placement((part(mod, "main", "Relu"),)).applied(mod)
    assert set(compiled(after)) == {"collage_one_Relu_1"}
    assert_same_results(mod, after)


def test_long_partitions_have_short_names() -> None:
    mod = program("def @main(%x: T) { Exp(Tanh(Sigmoid(Neg(Abs(%x))))) }")
    whole = part(mod, "main", "Abs", "Neg", "Sigmoid", "Tanh", "Exp")
    assert set(compiled(Placement((whole,)).applied(mod))) == {"collage_one_Abs_to_Exp_5"}


@pytest.mark.parametrize(
    ("partition", "message"),
    [
        (Partition("main", ONE, (7,), "Relu"), "the partition 'Relu' has node 7, but the nodes of function"),
        (
            Partition("main", ONE, (1,), "Relu", (Composite("one.relu", (70,)),)),
            "the partition 'Relu' has node 70, but",
        ),
        (Partition("nobody", ONE, (1,), "Relu"), "the module has no function 'nobody' that could be"),
        (Partition("compiled", ONE, (1,), "Relu"), "the module has no function 'compiled' that could be"),
    ],
)
def test_a_placement_of_another_program(partition: Partition, message: str) -> None:
    mod = program("""
    def @main(%x: T) { @compiled(Relu(Abs(%x))) }
    def @compiled(%z: T) attributes {Compiler="one", global_symbol="compiled"} { Relu(%z) }
    """)
    with pytest.raises(UsageError, match=message) as caught:
        Placement((partition,)).applied(mod)
    assert caught.value.help == "the plan belongs to another program"


def test_partitions_that_overlap_are_refused() -> None:
    mod = program("def @main(%x: T) { Relu(Abs(%x)) }")
    placement = Placement((part(mod, "main", "Abs"), part(mod, "main", "Abs", "Relu")))
    with pytest.raises(UsageError, match="overlap"):
        placement.applied(mod)


def test_workers_find_the_kind_by_its_name() -> None:
    mod = program("def @main(%x: T) { Relu(%x) }")
    candidate = Placement((part(mod, "main", "Relu"),)).candidate
    assert CANDIDATE_KINDS[KIND] is instantiate_placement
    after = instantiate_placement(mod, Target("cpu"), candidate.trace)
    assert set(compiled(after)) == {"collage_one_Relu"}
