"""Random programs, partitioned for engines that support random sets of operators."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.pass_checks import DEVICE, planned
from tests.properties.random_networks import networks, random_inputs
from tests.properties.random_programs import BINARY, CONDITION, SHAPE, UNARY, programs

from intarsia.build import build
from intarsia.ir import Call, Expr, GlobalVar, IRModule, Op, children, post_order, structural_equal
from intarsia.ir.parser import parse_module
from intarsia.ir.pattern import dominates, find_matches, is_op, wildcard
from intarsia.ir.printer import print_module
from intarsia.op import verify
from intarsia.op.operator_predicate import holding_operator_predicate
from intarsia.op.pattern_table import CompositePattern, PatternTable, holding_pattern_table
from intarsia.passes import (
    AnnotateTarget,
    MergeCompilerRegions,
    MergeComposite,
    PartitionGraph,
    partition_for,
)

ENGINES = ("onnxruntime", "reference")
ELEMENTWISE = is_op(*UNARY, *BINARY)
TABLE: PatternTable = (
    CompositePattern(
        "fan", dominates(is_op(*UNARY)(wildcard()), ELEMENTWISE(...), is_op(*BINARY)(...), at_most=5)
    ),
    CompositePattern("pair", is_op(*UNARY)(ELEMENTWISE(...))),
)
EXAMPLES = settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
some_operators = st.sets(st.sampled_from((*UNARY, *BINARY)), min_size=1)


def is_one_of(names: set[str], found: Call) -> bool:
    return str(found.op) in names


@contextmanager
def supporting(first: set[str], second: set[str], table: PatternTable = ()) -> Iterator[None]:
    """Engines that support these operators, and a table for the first."""
    with ExitStack() as stack:
        for engine, names in zip(ENGINES, (first, second), strict=True):
            stack.enter_context(holding_operator_predicate(engine, partial(is_one_of, names)))
        stack.enter_context(holding_pattern_table(ENGINES[0], table))
        yield


def inputs_of(mod: IRModule) -> list[np.ndarray[tuple[int, ...], np.dtype[np.generic]]]:
    rng = np.random.default_rng(0)
    return [
        np.array(True) if param.checked_type == CONDITION else rng.normal(size=SHAPE).astype(np.float32)
        for param in mod["main"].params
    ]


def results(mod: IRModule) -> list[np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    return [np.asarray(value) for value in build(mod).run_flat(*inputs_of(mod))]


def same(before: IRModule, after: IRModule) -> None:
    for old, new in zip(results(before), results(after), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-5)


def calls_outside(mod: IRModule, names: set[str]) -> list[str]:
    """Calls of some operators in no marked function."""
    return [
        str(expr.op)
        for function in mod.graph_functions.values()
        if "Compiler" not in function.attrs
        for expr in post_order(function)
        if isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name in names
    ]


@EXAMPLES
@given(programs(compilers=(), annotated=False, steps=14), some_operators, some_operators)
def test_programs_compute_the_same(mod: IRModule, first: set[str], second: set[str]) -> None:
    with supporting(first, second):
        after = partition_for(mod, *ENGINES)
        verify(after)
        assert partition_for(after, *ENGINES) is after
    assert calls_outside(after, first | second) == []
    text = print_module(after)
    assert structural_equal(parse_module(text.text, text.constants), after)
    same(mod, after)


@EXAMPLES
@given(programs(compilers=(), annotated=False, steps=14), some_operators, some_operators)
def test_programs_with_composites_compute_the_same(mod: IRModule, first: set[str], second: set[str]) -> None:
    with supporting(first, second, TABLE):
        merged = MergeComposite(ENGINES[0])(mod)
        verify(merged)
        assert MergeComposite(ENGINES[0])(merged) is merged
        after = partition_for(mod, *ENGINES)
        verify(after)
        assert partition_for(after, *ENGINES) is after
    same(mod, merged)
    same(mod, after)


@EXAMPLES
@given(programs(compilers=("reference",), annotated=True), some_operators, some_operators)
def test_annotated_programs_stay_well_formed(mod: IRModule, first: set[str], second: set[str]) -> None:
    with supporting(first, second, TABLE):
        after = partition_for(mod, *ENGINES)
        verify(after)
        assert partition_for(after, *ENGINES) is after


@EXAMPLES
@given(programs(compilers=(), annotated=False), some_operators, some_operators)
def test_spans_and_devices_are_kept(mod: IRModule, first: set[str], second: set[str]) -> None:
    mod = planned(mod)
    with supporting(first, second, TABLE):
        for item in (
            MergeComposite(ENGINES[0]),
            AnnotateTarget(ENGINES),
            MergeCompilerRegions(),
            PartitionGraph(),
        ):
            mod = item(mod)
            for function in mod.graph_functions.values():
                for expr in post_order(function):
                    if not isinstance(expr, (Op, GlobalVar)):
                        device = expr.virtual_device
                        assert expr.span is not None, f"{item}: {expr}"
                        assert (device.device_type, device.virtual_device_id) == (DEVICE.device_type, 1)


@EXAMPLES
@given(networks(), st.sampled_from(["onnxruntime", "openvino"]))
def test_networks_compute_the_same(mod: IRModule, engine: str) -> None:
    after = partition_for(mod, engine)
    verify(after)
    old, new = (build(item).run_flat(*random_inputs(0)) for item in (mod, after))
    for left, right in zip(old, new, strict=True):
        bound = 1e-4 * max(1.0, float(np.abs(np.asarray(left)).max()))
        np.testing.assert_allclose(np.asarray(right), np.asarray(left), rtol=1e-4, atol=bound)


@EXAMPLES
@given(programs(compilers=(), annotated=False, steps=14))
def test_dominated_matches_lead_nowhere_else(mod: IRModule) -> None:
    """By brute force: each covered expression but the last is used by covered expressions only."""
    main = mod["main"]
    users: dict[Expr, set[Expr]] = {}
    for expr in post_order(main):
        for used in children(expr):
            users.setdefault(used, set()).add(expr)
    for found in find_matches(TABLE[0].pattern, main):
        inside = set(found.covered)
        assert found.covered[-1] is found.root
        for expr in found.covered[:-1]:
            assert users[expr] <= inside
            assert expr is not main.body
