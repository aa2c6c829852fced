"""Greedy partitioning: programs compute the same when engines run what they support."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tests.pass_checks import assert_same_results

import intarsia as ia
from intarsia.ir import Attrs, Call, Constant, Expr, Function, IRModule, Op, Var, post_order
from intarsia.ir.parser import parse_module
from intarsia.ir.pattern import is_op, wildcard
from intarsia.op import infer_types, verify
from intarsia.op.operator_predicate import holding_operator_predicate
from intarsia.op.pattern_table import CompositePattern, holding_pattern_table
from intarsia.passes import partition_for, partition_sequence
from intarsia.support.errors import UsageError
from intarsia.transform import read_passes

pytestmark = pytest.mark.quick_tests(14)

ENGINES = ("onnxruntime", "openvino", "reference")
TENSOR = "Tensor[(2, 3), float32]"

PROGRAMS = {
    "chain": "def @main(%x: TENSOR) { Relu(Neg(%x)) }",
    "diamond": "def @main(%x: TENSOR) { %0 = Relu(%x); %1 = Hardmax(%0); Add(%0, Exp(%1)) }",
    "results": "def @main(%x: TENSOR) { %0 = Relu(%x); (%0, (Exp(%0), %x)) }",
    "fields": "def @main(%x: TENSOR) { %0 = Split(%x, axis=1, num_outputs=3, outputs=3); Add(%0.0, %0.2) }",
    "whole tuple": "def @main(%x: TENSOR) { Split(Neg(%x), axis=1, num_outputs=3, outputs=3) }",
    "branches": """
        def @main(%x: TENSOR, %c: Tensor[(), bool]) {
          %0 = Neg(%x);
          %1 = if (%c) { Exp(Add(%0, %x)) } else { Hardmax(%0) };
          Relu(%1)
        }""",
    "let": "def @main(%x: TENSOR) { let %y: TENSOR = Exp(%x); let %z: TENSOR = Neg(%y); Add(%z, %y) }",
    "function value": """
        def @main(%x: TENSOR) {
          let %f = fn (%y: TENSOR) { Add(Exp(%y), %x) };
          %0 = %f(%x): TENSOR;
          Mul(%f(%0): TENSOR, %0)
        }""",
    "recursion": """
        def @main(%x: TENSOR) { @step(%x, meta[Constant][2]): TENSOR }
        def @step(%x: TENSOR, %n: Tensor[(), int32]) -> TENSOR {
          %0 = Greater(%n, meta[Constant][3]);
          if (%0) { @step(Mul(Exp(Neg(%x)), %x), Sub(%n, meta[Constant][4])): TENSOR } else { %x }
        }""",
    "loop": """
        def @main(%x: TENSOR) {
          %0 = Exp(Neg(%x));
          %1 = Loop(meta[Constant][0], meta[Constant][1], %x,
            fn (%i: Tensor[(), int64], %c: Tensor[(), bool], %s: TENSOR) { (%c, Add(%s, %0)) }, outputs=1);
          Relu(%1.0)
        }""",
}
CONSTANTS = (np.array(3), np.array(True), *(np.array(number, np.int32) for number in (3, 0, 1)))
"""Counted down in 32 bits: OpenVINO has no wider integers."""


def program(name: str) -> IRModule:
    return infer_types(parse_module(PROGRAMS[name].replace("TENSOR", TENSOR), CONSTANTS))


def unmarked(mod: IRModule) -> list[str]:
    """Operators that are called outside of marked functions."""
    return [
        str(expr.op)
        for function in mod.graph_functions.values()
        if "Compiler" not in function.attrs
        for expr in post_order(function)
        if isinstance(expr, Call) and isinstance(expr.op, Op)
    ]


@pytest.mark.quick_cases(10)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_small_programs_compute_the_same(name: str, engine: str) -> None:
    before = program(name)
    after = partition_for(before, engine)
    verify(after)
    assert partition_for(after, engine) is after
    assert any(function.attrs.get("Compiler") == engine for function in after.graph_functions.values())
    assert unmarked(after) == []
    assert_same_results(before, after)


@pytest.fixture
def _partial() -> Iterator[None]:
    """Engines that lack some operators."""
    with (
        holding_operator_predicate(
            "onnxruntime", lambda found: str(found.op) in {"Relu", "Add", "Neg", "Split"}
        ),
        holding_operator_predicate(
            "openvino", lambda found: str(found.op) in {"Exp", "Mul", "Greater", "Neg"}
        ),
    ):
        yield


@pytest.mark.quick_cases(6)
@pytest.mark.usefixtures("_partial")
@pytest.mark.parametrize(
    "engines", [("onnxruntime",), ("onnxruntime", "openvino"), ("openvino", "onnxruntime")]
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_an_engine_lacks_is_left_to_others(name: str, engines: tuple[str, ...]) -> None:
    before = program(name)
    after = partition_for(before, *engines)
    verify(after)
    assert partition_for(after, *engines) is after
    assert_same_results(before, after)


@pytest.mark.usefixtures("_partial")
def test_a_diamond_is_cut() -> None:
    after = partition_for(program("diamond"), "onnxruntime", "openvino")
    made = {
        var.name: str(function.body.op)
        for var, function in after.graph_functions.items()
        if isinstance(function.body, Call)
    }
    assert made["main_onnxruntime_0"] == "Relu"
    assert made["main_openvino_1"] == "Exp"
    assert made["main_onnxruntime_2"] == "Add"
    assert unmarked(after) == ["Hardmax"]


def test_composites_are_run_by_the_engine() -> None:
    table = (CompositePattern("exp_neg", is_op("Exp")(is_op("Neg")(wildcard()))),)
    with (
        holding_pattern_table("onnxruntime", table),
        holding_operator_predicate("onnxruntime", lambda found: str(found.op) == "Relu"),
    ):
        before = infer_types(parse_module(f"def @main(%x: {TENSOR}) {{ Relu(Exp(Neg(%x))) }}"))
        after = partition_for(before, "onnxruntime")
    assert unmarked(after) == []
    assert [var.name for var in after] == ["main", "main_onnxruntime_0"]
    literal = [expr for expr in post_order(after["main_onnxruntime_0"].body) if isinstance(expr, Function)]
    assert [item.attrs["Composite"] for item in literal] == ["onnxruntime.exp_neg"]
    assert_same_results(before, after)


def test_a_composite_alone_runs_without_its_engine() -> None:
    y = Var("y", checked_type=ia.ir.TensorType((2, 3), ia.ir.DType.FLOAT32))
    composite = Function((y,), ia.op.call("Neg", y), Attrs({"Composite": "acme.neg"}))
    mod = IRModule.from_expr(Function((y,), Call(composite, (y,), checked_type=y.checked_type)))
    value = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(ia.build(mod)(value), -value)


def test_the_passes_are_a_sequence_that_can_be_printed() -> None:
    sequence = partition_sequence("openvino", "cpu -toolchain=onnxruntime -threads=1")
    assert [item.info.name for item in sequence.passes] == [
        "MergeComposite",
        "MergeComposite",
        "AnnotateTarget",
        "MergeCompilerRegions",
        "PartitionGraph",
    ]
    assert sequence.info.name == "partition_for_openvino_onnxruntime"
    assert read_passes(str(sequence)) == (sequence,)


def test_options_of_a_target_reach_the_function() -> None:
    after = partition_for(program("chain"), "cpu -toolchain=onnxruntime -threads=1")
    assert "-threads=1" in str(after["main_onnxruntime_0"].attrs["target"])


def test_an_unknown_toolchain_is_an_error() -> None:
    with pytest.raises(UsageError, match="unknown toolchain 'openvin'"):
        partition_for(program("chain"), "openvin")


def test_an_engine_that_supports_nothing_changes_nothing() -> None:
    before = program("chain")
    with holding_operator_predicate("openvino", lambda _: False):
        assert partition_for(before, "openvino") is before


def steps(length: int) -> Expr:
    x = Var("x", checked_type=ia.ir.TensorType((2, 3), ia.ir.DType.FLOAT32))
    expr: Expr = x
    for step in range(length):
        expr = ia.op.call("Hardmax" if step % 10 == 9 else "Relu", expr)
    return Function((x,), expr)


def test_a_long_chain(length: int) -> None:
    chain = steps(length)
    assert isinstance(chain, Function)
    with holding_operator_predicate("openvino", lambda found: str(found.op) == "Relu"):
        after = partition_for(IRModule.from_expr(chain), "openvino")
    assert len(after.functions) == length // 10 + 1
    assert len(unmarked(after)) == length // 10


def test_weights_stand_in_the_region() -> None:
    before = infer_types(
        parse_module(
            f"def @main(%x: {TENSOR}) {{ MatMul(%x, meta[Constant][0]) }}", [np.ones((3, 4), np.float32)]
        )
    )
    region = partition_for(before, "onnxruntime")["main_onnxruntime_0"]
    assert len(region.params) == 1
    assert any(isinstance(expr, Constant) for expr in post_order(region))
