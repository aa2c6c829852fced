"""Which toolchains there are, and what they say of themselves."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.each_case import each_case

from intarsia.ir import Call, DType, Function, Op, SequenceType, TensorType, TupleType, Var
from intarsia.target import Target
from intarsia.toolchain import (
    Available,
    FusionStyle,
    installed_toolchains,
    targets,
    toolchain,
    usable_toolchains,
)

NAMES = ("native", "onnxruntime", "openvino", "reference")


def test_all_four_are_installed_and_usable_here() -> None:
    found = installed_toolchains()
    found = tuple(status for status in found if status.name != "torch")  # it is an extra
    assert tuple(status.name for status in found) == NAMES
    assert all(status.is_usable for status in found)
    assert tuple(usable.name for usable in usable_toolchains() if usable.name != "torch") == NAMES
    expected = tuple(Target(f"cpu -toolchain={name}") for name in NAMES)
    assert tuple(target for target in targets() if target.toolchain != "torch") == expected


@pytest.mark.parametrize("name", NAMES)
def test_describes_itself(name: str) -> None:
    found = toolchain(name)
    availability = found.availability()
    assert isinstance(availability, Available)
    assert availability.version[0].isdigit()
    assert found.name == name
    assert found.thread_policy.startswith(f"{name}: ")
    assert found.onnx_limits.opset >= 26
    assert isinstance(found.fusion_style, FusionStyle)


def test_no_engine_is_imported_before_it_is_asked_for() -> None:
    heavy = "{'llvmlite', 'onnx', 'onnxruntime', 'openvino'}"
    program = (
        "import sys, intarsia.toolchain\n"
        "from intarsia.runtime.kernel import TOOLCHAINS\n"
        "found = [TOOLCHAINS[name]() for name in TOOLCHAINS]\n"
        f"assert not {heavy} & set(sys.modules), {heavy} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def call(domain: str, *types: TensorType | SequenceType, op: str = "Compress") -> Call:
    args = tuple(Var(f"x{n}", checked_type=known) for n, known in enumerate(types))
    return Call(Op(op, domain), args, checked_type=types[0] if types else None)


FLOAT = TensorType((2,), DType.FLOAT32)
STRING = TensorType((2,), DType.STRING)
COMPLEX = TensorType((2,), DType.COMPLEX64)


@each_case(
    ("found", "by"),
    [
        (call("", FLOAT, FLOAT), "onnxruntime openvino reference"),
        (call(""), "onnxruntime openvino reference"),
        (call("ai.onnx.ml", FLOAT), "onnxruntime reference"),
        (call("ai.onnx.preview.training", FLOAT), "reference"),
        (call("intarsia", FLOAT), "reference"),
        (call("elsewhere", FLOAT), ""),
        (call("", STRING), "onnxruntime reference"),
        (call("", COMPLEX), "reference"),
        (call("", FLOAT, SequenceType(FLOAT)), "reference"),
        (
            Call(Op("Loop"), (Function((Var("i", checked_type=FLOAT),), Var("y", checked_type=STRING)),)),
            "onnxruntime reference",
        ),
        (Call(Op("Split"), (), checked_type=TupleType((FLOAT, SequenceType(FLOAT)))), "reference"),
        (Call(Function((), Var("y")), ()), ""),
    ],
)
def test_supports(found: Call, by: str) -> None:
    assert " ".join(name for name in NAMES if toolchain(name).supports(found)) == by
