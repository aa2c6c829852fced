"""Collage on random programs, with random costs: covers compute the same, and the best equals brute force."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.brute_force_covers import all_covers
from tests.collage_costs import BOUNDARIES, DrawnCosts, One, Two, some_specs
from tests.effort import examples
from tests.properties.random_programs import CONDITION, SHAPE, VALUE, programs

from intarsia.build import build
from intarsia.collage.candidates.candidate_partition import CandidatePartition
from intarsia.collage.collage import CollageResult, collage
from intarsia.collage.costs.boundary_costs import NO_BOUNDARIES
from intarsia.collage.cover_of_graph import GraphCover
from intarsia.collage.function_search import CollageOptions, FunctionSearch
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.placement.placement import Placement
from intarsia.collage.prune import collect_candidates
from intarsia.ir import Expr, Function, IRModule, Tuple, Var, structural_equal
from intarsia.ir.parser import parse_module
from intarsia.ir.printer import print_module
from intarsia.op import call, infer_types, verify
from intarsia.runtime.kernel import TOOLCHAINS

EXAMPLES = settings(
    max_examples=examples(25),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
OPTIONS = CollageOptions(covers=3, last_resort=None, shrink=False)
SEEDS = st.integers(0, 10**6)


@pytest.fixture(autouse=True, scope="module")
def toolchains() -> Iterator[None]:
    with TOOLCHAINS.holding("one", One), TOOLCHAINS.holding("two", Two):
        yield


def searched(mod: IRModule, seed: int) -> CollageResult:
    return collage(mod, some_specs(), DrawnCosts(seed), BOUNDARIES, OPTIONS)


def results(mod: IRModule) -> list[npt.NDArray[np.float32]]:
    rng = np.random.default_rng(0)
    inputs = [
        np.array(True) if param.checked_type == CONDITION else rng.normal(size=SHAPE).astype(np.float32)
        for param in mod["main"].params
    ]
    return [np.asarray(each) for each in build(mod).run_flat(*inputs)]


@EXAMPLES
@given(programs(compilers=(), annotated=False), SEEDS)
def test_every_cover_computes_the_same(mod: IRModule, seed: int) -> None:
    expected = results(mod)
    for record in searched(mod, seed).placements:
        after = record.placement.applied(mod)
        verify(after)
        for found, wanted in zip(results(after), expected, strict=True):
            assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@EXAMPLES
@given(programs(), SEEDS)
def test_placements_outlive_printing_and_json(mod: IRModule, seed: int) -> None:
    """Numbers of nodes are the same in the parsed program, where constants are stored once or often."""
    mod = infer_types(mod)
    placement = searched(mod, seed).best
    text = print_module(mod)
    again = Placement.of_candidate(placement.candidate)
    assert again == placement
    parsed = infer_types(parse_module(text.text, text.constants))
    assert structural_equal(again.applied(parsed), placement.applied(mod))


@EXAMPLES
@given(programs(), SEEDS)
def test_what_is_compiled_already_is_left_alone(mod: IRModule, seed: int) -> None:
    after = searched(infer_types(mod), seed).best.applied(mod)
    verify(after)
    for var, function in mod.graph_functions.items():
        if "Compiler" in function.attrs:
            assert after.functions[after.global_var(var.name)] is function
    assert searched(after, seed).best.applied(after) is after


def elementwise(rng: random.Random) -> Function:
    """Up to six operators on two inputs, with constants, one or several results."""
    params = (Var("x", checked_type=VALUE), Var("y", checked_type=VALUE))
    values: list[Expr] = list(params)
    for _ in range(rng.randint(1, 6)):
        name = rng.choice(("Relu", "Neg", "Tanh", "Add", "Mul"))
        arity = 2 if name in ("Add", "Mul") else 1
        values.append(call(name, *(rng.choice(values[-4:]) for _ in range(arity))))
    exits = rng.sample(values[2:], min(len(values) - 2, rng.choice((1, 1, 2))))
    return Function(params, Tuple(tuple(exits)) if len(exits) > 1 else exits[0])


def as_measured(graph: DataflowGraph, costs: DrawnCosts) -> Sequence[CandidatePartition]:
    """All candidates with their costs."""
    candidates = collect_candidates(graph, some_specs()).candidates
    return [
        one if one.spec.name == "host" else one.with_cost(costs.estimate([one])[0].cost) for one in candidates
    ]


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("block", range(4))
def test_the_best_cover_equals_brute_force(block: int) -> None:
    for seed in range(25 * block, 25 * (block + 1)):
        rng = random.Random(seed)
        function = elementwise(rng)
        conflicts = frozenset({("one", "two")}) if rng.random() < 0.3 else frozenset()
        boundaries = BOUNDARIES if rng.random() < 0.7 else NO_BOUNDARIES
        costs = DrawnCosts(seed)
        options = replace(OPTIONS, covers=6, conflicts=conflicts)
        found = FunctionSearch("main", function, some_specs(), costs, boundaries, options).run()
        graph = DataflowGraph.of(function)
        cover = GraphCover.of(graph, as_measured(graph, DrawnCosts(seed)), boundaries, conflicts)
        expected = {round(each.cost, 9): each for each in reversed(all_covers(cover.problem))}
        assert round(found.best.seconds, 9) == min(expected)
        assert found.is_exact
        assert found.gap == 0
        assert len(set(costs.asked)) == len(costs.asked), "nothing is estimated twice"
        for each in found.covers:
            assert round(each.seconds, 9) in expected
            used = {part.toolchain for part in each.partitions}
            assert not (conflicts and used >= {"one", "two"})
