"""The whole of @main for one toolchain."""

from __future__ import annotations

import numpy as np
import pytest
from tests.pass_checks import assert_facts_kept, checked

import intarsia as ia
from intarsia.ir import Call, Constant, DType, Function, GlobalVar, If, IRModule, TensorType, Var
from intarsia.op import call, verify
from intarsia.passes import PartitionWhole, partition_whole
from intarsia.support.errors import UsageError

TARGET = ia.Target.for_toolchain("onnxruntime")


def branching() -> IRModule:
    x = Var("x", checked_type=TensorType((3,), DType.FLOAT32))
    positive = call("Greater", call("ReduceSum", x, keepdims=0), Constant(np.array(0, np.float32)))
    body = If(positive, call("Exp", x), call("Neg", x), checked_type=x.checked_type)
    return IRModule.from_expr(Function((x,), body))


def test_main_calls_one_marked_function() -> None:
    module = partition_whole(branching(), TARGET)
    main = module["main"]
    assert isinstance(main.body, Call)
    assert isinstance(main.body.op, GlobalVar)
    region = module[main.body.op.name]
    assert region.attrs["Compiler"] == "onnxruntime"
    assert region.attrs["target"] == "cpu -toolchain=onnxruntime"
    assert "Compiler" not in main.attrs
    assert main.checked_type == branching()["main"].checked_type
    verify(module)


def test_the_program_computes_the_same() -> None:
    before = branching()
    after = partition_whole(before, TARGET)
    for x in (np.array([1, 2, 3], np.float32), np.array([-1, -2, -3], np.float32)):
        np.testing.assert_allclose(ia.build(after)(x), ia.build(before)(x), rtol=1e-6)


def test_names_that_are_taken_are_avoided() -> None:
    module = branching()
    module = module.with_function("main_onnxruntime", module["main"])
    after = partition_whole(module, TARGET)
    assert [var.name for var in after] == ["main", "main_onnxruntime", "main_onnxruntime_1"]


def test_the_pass_does_it_once() -> None:
    after = checked(PartitionWhole(str(TARGET)), branching())
    assert [var.name for var in after] == ["main", "main_onnxruntime"]


def test_the_pass_keeps_spans_and_devices() -> None:
    assert_facts_kept(PartitionWhole(str(TARGET)), branching())


def test_the_pass_takes_options_of_the_target() -> None:
    after = PartitionWhole("cpu -toolchain=openvino -threads=1")(branching())
    assert "-threads=1" in str(after["main_openvino"].attrs["target"])


def test_the_pass_needs_a_toolchain() -> None:
    with pytest.raises(UsageError, match='target "cpu" names no toolchain'):
        PartitionWhole("cpu")(branching())
