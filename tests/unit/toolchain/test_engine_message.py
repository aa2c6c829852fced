"""What is left of the engines' messages; the texts are real ones."""

from __future__ import annotations

import pytest

from intarsia.toolchain.onnxruntime.message import onnxruntime_message
from intarsia.toolchain.openvino.message import openvino_message

PREFIX = "[ONNXRuntimeError] : 1 : FAIL : "
SOURCE = "/onnxruntime_src/onnxruntime/core"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (
            "[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : "
            "Could not find an implementation for Pad(24) node with name ''",
            "Could not find an implementation for Pad(24) node",
        ),
        (
            "[ONNXRuntimeError] : 10 : INVALID_GRAPH : This is an invalid model. "
            'In Node, ("", Attention, "", -1)'
            ' : ("Q": tensor(float),) -> ("Y": tensor(float),) , '
            "Error Unrecognized attribute: left for operator Q",
            "Unrecognized attribute: left for operator Q",
        ),
        (
            f"{PREFIX}{SOURCE}/graph/model.cc:256 onnxruntime::Model::Model(onnx::ModelProto&&, const "
            "onnxruntime::PathString&) Unsupported model IR version: 14, max supported IR version: 13\n",
            "Unsupported model IR version: 14, max supported IR version: 13",
        ),
        (
            f"{PREFIX}Exception during initialization: {SOURCE}/providers/cpu/rnn/deep_cpu_gru.h:56 "
            "onnxruntime::DeepCpuGruOp::DeepCpuGruOp(const onnxruntime::OpKernelInfo&) [with T = float] "
            "layout_ == 0 was false. Batchwise recurrent operations (layout == 1) are not supported.\n",
            "Batchwise recurrent operations (layout == 1) are not supported",
        ),
        (
            "Error in execution: Non-zero status code returned while running Gather node. Name:'g' "
            "Status Message: indices element out of data bounds, idx=7",
            "Gather 'g': indices element out of data bounds, idx=7",
        ),
        ("x" * 400, "x" * 297 + "..."),
        ("", "RuntimeError"),
    ],
)
def test_onnxruntime(text: str, kept: str) -> None:
    assert onnxruntime_message(RuntimeError(text)) == kept


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (
            "Exception from src/inference/src/cpp/core.cpp:105:\nCheck 'false' failed at src/r.cpp:151:\n"
            "FrontEnd API failed with OpConversionFailure:\nModel wasn't fully converted.\nSummary:\n"
            "-- No conversion rule found for operations: Foo-26\nTo facilitate the conversion of it\n\n",
            "No conversion rule found for operations: Foo-26",
        ),
        (
            "Exception from src/core.cpp:105:\nFrontEnd API failed with OpConversionFailure:\n"
            "Model wasn't fully converted. Failed operations detailed log:\n-- Conv-26 with a message:\n"
            "While validating ONNX node '<Node(Conv): y>': Check 'a || b' failed at src/util.hpp:307:\n"
            "Data batch channel count (3) does not match filter input channel count (5).\n\n"
            "Summary:\n-- Conversion is failed for: Conv-26\n",
            "Conv: Data batch channel count (3) does not match filter input channel count (5)",
        ),
        (
            "Exception from src/infer_request.cpp:224:\nException from src/node.cpp:794:\n"
            "[CPU] MatMul node with name 'y' Check 'k_lhs == k_rhs' failed at src/custom/matmul.cpp:45:\n"
            "Matmul input shapes are incompatible shape A: (2.3) shape B: (4.2)\n\n\n",
            "MatMul node with name 'y': Matmul input shapes are incompatible shape A: (2.3) shape B: (4.2)",
        ),
        (
            "Exception from src/a.cpp:1:\nCheck 'inputs.size() > 0' failed at src/b.cpp:2:\n",
            "inputs.size() > 0",
        ),
        ("", "RuntimeError"),
    ],
)
def test_openvino(text: str, kept: str) -> None:
    assert openvino_message(RuntimeError(text)) == kept
