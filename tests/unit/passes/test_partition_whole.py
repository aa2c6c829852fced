"""The whole of @main for one toolchain."""

from __future__ import annotations

import numpy as np
import pytest
from tests.pass_checks import assert_facts_kept, checked

import intarsia as ia
from intarsia.ir import Call, Constant, DType, Function, GlobalVar, If, IRModule, TensorType, Var, with_fields
from intarsia.measure.candidate_kind import WHOLE, instantiate
from intarsia.op import call, verify
from intarsia.passes import MergeCompilerRegions, PartitionGraph, PartitionWhole, PlanDevices, partition_whole
from intarsia.support.errors import UnsupportedModelError, UsageError
from intarsia.target import DeviceType, VirtualDevice

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


def test_the_pass_refuses_several_devices_and_says_what_to_do() -> None:
    x = Var("x", checked_type=TensorType((3,), DType.FLOAT32))
    devices = [
        VirtualDevice.parse(f'VirtualDevice(cpu:{number}, target="{TARGET} -threads=1")') for number in (0, 1)
    ]
    left = with_fields(call("Exp", x), virtual_device=devices[0])
    right = with_fields(call("Neg", left), virtual_device=devices[1])
    planned = PlanDevices()(IRModule.from_expr(Function((x,), right)))
    with pytest.raises(UnsupportedModelError) as caught:
        PartitionWhole(str(TARGET))(planned)
    assert str(caught.value) == (
        "@main is on cpu:0, cpu:1, but one function of a toolchain is on one device\n"
        "  in pass PartitionWhole\n"
        "help: name the toolchain in the targets of the devices; MergeCompilerRegions and PartitionGraph "
        "then give it the regions of each device"
    )
    regions = PartitionGraph()(MergeCompilerRegions()(planned))  # what the help says
    marked = [function for function in regions.graph_functions.values() if "Compiler" in function.attrs]
    assert [function.virtual_device for function in marked] == devices
    with ia.build(regions) as exe:
        np.testing.assert_allclose(exe(np.ones(3, np.float32)), -np.exp(np.ones(3, np.float32)), rtol=1e-6)


def test_the_pass_refuses_a_device_that_the_target_is_not_for() -> None:
    x = Var("x", checked_type=TensorType((3,), DType.FLOAT32))
    planned = PlanDevices(fallback_device="mock")(IRModule.from_expr(Function((x,), call("Exp", x))))
    with pytest.raises(UnsupportedModelError) as caught:
        PartitionWhole(str(TARGET))(planned)
    assert str(caught.value) == (
        '@main is on mock:0, but target "cpu -toolchain=onnxruntime" is for devices of kind cpu\n'
        "  in pass PartitionWhole\n"
        "help: plan the program for that device, or give a target that is for this one"
    )


def test_a_program_on_several_devices_is_refused_as_a_candidate_too() -> None:
    """It was built on one device and failed there, for the lack of copies that planning had put elsewhere."""
    x = Var(
        "x", checked_type=TensorType((3,), DType.FLOAT32), virtual_device=VirtualDevice(DeviceType.CPU, 0)
    )
    moved = with_fields(call("Neg", x), virtual_device=VirtualDevice(DeviceType.CPU, 1))
    with pytest.raises(UnsupportedModelError, match="@main is on cpu:0, cpu:1"):
        instantiate(IRModule.from_expr(Function((x,), moved)), TARGET, WHOLE)
