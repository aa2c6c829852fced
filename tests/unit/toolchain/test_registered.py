"""Which toolchains there are, and what they say of themselves."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.each_case import each_case

from intarsia.ir import Call, DType, Function, Op, SequenceType, TensorType, TupleType, Var
from intarsia.runtime.kernel import TOOLCHAINS, Kernel, KernelSource
from intarsia.support.errors import MissingToolchainError, UsageError
from intarsia.target import Target
from intarsia.toolchain import (
    Available,
    FusionStyle,
    Unavailable,
    availability_on,
    cpu_toolchains,
    installed_toolchains,
    targets,
    toolchain,
    toolchain_for,
    usable_toolchains,
)

EXTRAS = ("tensorrt", "torch")
NAMES = ("native", "onnxruntime", "openvino", "reference")


def test_all_four_are_installed_and_usable_here() -> None:
    found = installed_toolchains()
    found = tuple(status for status in found if status.name not in EXTRAS)
    assert tuple(status.name for status in found) == NAMES
    assert all(status.is_usable for status in found)
    assert tuple(usable.name for usable in usable_toolchains() if usable.name not in EXTRAS) == NAMES
    expected = tuple(Target(f"cpu -toolchain={name}") for name in NAMES)
    assert tuple(target for target in targets() if target.toolchain not in EXTRAS) == expected


class Odd:
    """A toolchain whose answer about devices fails, or is missing."""

    name = "odd"

    def availability(self) -> Available:
        return Available("1")

    def load(self, source: KernelSource, blob: bytes | None = None) -> Kernel:
        raise NotImplementedError


class Failing(Odd):
    def availability_on(self, kind: str) -> Available:
        raise OSError(f"no {kind}")


def test_what_a_toolchain_lacks_for_a_kind_of_device_is_said() -> None:
    with TOOLCHAINS.holding("odd", Odd):
        assert availability_on("odd", "cuda") == Unavailable("odd makes kernels for the CPU only")
        assert availability_on("odd", "mock") == Available("1")
        with pytest.raises(
            MissingToolchainError, match="'odd' is not usable on cuda here: odd makes kernels"
        ):
            toolchain_for(Target("cuda -toolchain=odd"))
        assert isinstance(toolchain_for(Target("cpu -toolchain=odd")), Odd)
        assert "odd" in cpu_toolchains()
    with TOOLCHAINS.holding("odd", Failing):
        assert availability_on("odd", "cuda") == Unavailable("trying it failed with OSError: no cuda")
    with pytest.raises(UsageError, match='the target "cuda" names no toolchain'):
        toolchain_for(Target("cuda"))


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
