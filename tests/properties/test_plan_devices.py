"""Planned programs compute the same with the fewest copies; planning is linear, and takes any depth."""

from __future__ import annotations

import cProfile
import pstats
import random

import numpy as np
import pytest
from hypothesis import given, settings
from tests.effort import examples
from tests.properties.annotated_graphs import DEVICES, F32, AnnotatedGraph, annotated_graphs
from tests.properties.random_programs import programs

from intarsia.build import build
from intarsia.ir import Expr, Function, IRModule, Let, Var, post_order
from intarsia.op import call, on_device, verify
from intarsia.op.device_call import is_device_copy, placement_of
from intarsia.passes import PlanDevices
from intarsia.passes.devices.consistency import device_gaps
from intarsia.passes.devices.device_domains import DeviceConflictError
from intarsia.passes.devices.without_devices import without_devices

EXAMPLES = settings(max_examples=examples(150), deadline=None)


def copies(mod: IRModule) -> int:
    functions = mod.graph_functions.values()
    return sum(is_device_copy(expr) for function in functions for expr in post_order(function))


def checked(mod: IRModule) -> IRModule:
    """The planned program, which is whole, and stays as it is."""
    planned = PlanDevices()(mod)
    verify(planned)
    assert list(device_gaps(planned)) == []
    assert PlanDevices()(planned) is planned
    return planned


def check_copies(graph: AnnotatedGraph) -> None:
    if graph.is_contradictory:
        with pytest.raises(DeviceConflictError):
            PlanDevices()(graph.mod)
        return
    found = copies(checked(graph.mod))
    if graph.is_held:  # a value that is held where it is anyway is counted twice, and copied once
        assert found <= graph.fewest_copies()
    else:
        assert found == graph.fewest_copies()


@EXAMPLES
@given(annotated_graphs())
def test_copies_between_two_devices_are_the_fewest(graph: AnnotatedGraph) -> None:
    check_copies(graph)


@EXAMPLES
@given(annotated_graphs(devices=3))
def test_copies_between_three_devices_are_the_fewest(graph: AnnotatedGraph) -> None:
    check_copies(graph)


@EXAMPLES
@given(annotated_graphs(steps=6, joins=True))
def test_copies_with_joins_of_two_devices_are_the_fewest(graph: AnnotatedGraph) -> None:
    check_copies(graph)


@EXAMPLES
@given(annotated_graphs(devices=3, steps=5, joins=True))
def test_copies_with_joins_of_three_devices_are_the_fewest(graph: AnnotatedGraph) -> None:
    check_copies(graph)


@settings(max_examples=examples(30), deadline=None)
@given(annotated_graphs(devices=3, steps=12))
def test_the_planned_graph_computes_the_same(graph: AnnotatedGraph) -> None:
    if graph.is_contradictory:
        return
    inputs = [np.full((2, 3), number + 1.5, np.float32) for number in range(len(graph.mod["main"].params))]
    results = [
        build(without_devices(mod), "cpu -toolchain=reference").run_flat(*inputs)
        for mod in (graph.mod, checked(graph.mod))
    ]
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


@EXAMPLES
@given(programs(compilers=("reference",), annotated=True))
def test_programs_of_all_kinds_are_planned(mod: IRModule) -> None:
    assert all(placement_of(expr) is None for expr in post_order(checked(mod)["main"]))


def chain(length: int, density: float) -> IRModule:
    """Operators one after the other, some with annotations of two devices."""
    source = random.Random(length)
    x = Var("x", checked_type=F32)
    value: Expr = x
    for _ in range(length):
        value = call("Add", value, x) if source.random() < 0.3 else call("Relu", value)
        if source.random() < density:
            value = on_device(value, source.choice(DEVICES[:2]))
    return IRModule.from_expr(Function((x,), value))


@pytest.mark.parametrize("density", [0.001, 0.3])
def test_a_long_chain(density: float, length: int) -> None:
    mod = chain(length, density)
    planned = PlanDevices()(mod)
    assert list(device_gaps(planned)) == []
    assert (
        copies(planned)
        < copies(mod) + sum(placement_of(expr) is not None for expr in post_order(mod["main"])) + 3
    )


def test_deep_lets() -> None:
    x = Var("x", checked_type=F32)
    names = [Var(f"v{number}", checked_type=F32) for number in range(1_200)]
    body: Expr = names[-1]
    for number in reversed(range(len(names))):
        value = call("Relu", names[number - 1] if number else x)
        placed = on_device(value, DEVICES[number // 300 % 2]) if number % 300 == 0 else value
        body = Let(names[number], placed, body)
    planned = PlanDevices()(IRModule.from_expr(Function((x,), body)))
    assert list(device_gaps(planned)) == []


@pytest.mark.slow
@pytest.mark.parametrize("density", [0.0, 0.3])
def test_planning_is_linear(density: float) -> None:
    assert _steps(4_000, density) < 5 * _steps(1_000, density)


def _steps(length: int, density: float) -> int:
    """How many calls of Python functions planning a chain takes."""
    mod = chain(length, density)
    profile = cProfile.Profile()
    profile.runcall(PlanDevices(), mod)
    total: int = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]  # typeshed does not list it
    return total
