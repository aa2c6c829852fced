"""float64 is not given to OpenVINO, which rounds it: each refused case is tried on the bare engine."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.onnx_models import model_of

import intarsia as ia
from intarsia.frontend.onnx import from_onnx
from intarsia.ir import Call, Constant, DType, Function, IRModule, TensorType, Var, free_vars
from intarsia.op import call
from intarsia.op.operator_predicate import operator_predicate
from intarsia.passes import AnnotateTarget, partition_for, partition_whole
from intarsia.passes.regions.toolchain_call import assigned_toolchain
from intarsia.support.errors import CompileError
from intarsia.toolchain import toolchain
from intarsia.toolchain.onnx_compile import newest_opset, onnx_kernel_source
from intarsia.transform import Sequential

OPENVINO = ia.Target.for_toolchain("openvino")
X = Var("x", checked_type=TensorType((4, 6), DType.FLOAT64))
FLOAT = Var("x", checked_type=TensorType((4, 6), DType.FLOAT32))
LONG = Var("x", checked_type=TensorType((4, 6), DType.INT64))
DATA: NDArray[np.float64] = np.random.default_rng(0).standard_normal((4, 6))


def integers(*values: int) -> Constant:
    return Constant(np.array(values, np.int64))


ROUNDED: dict[str, tuple[Call, NDArray[np.generic]]] = {
    "a sum": (call("ReduceSum", X, integers(1)), DATA),
    "a product": (call("MatMul", X, call("Transpose", X)), DATA),
    "what is moved": (call("Transpose", X), DATA),
    "what is reshaped": (call("Reshape", X, integers(6, 4)), 1e300 * DATA),
    "what is selected": (call("Gather", X, integers(2, 0)), 1e-300 * DATA),
    "the largest": (call("ReduceMax", X, integers(1)), DATA),
    "a comparison": (call("Equal", X, Constant(np.zeros(1))), 1e-300 * DATA),
    "a cast of infinities": (call("Cast", X, to=1), np.inf * DATA),
    "a cast to infinities": (call("Cast", FLOAT, to=11), (np.inf * DATA).astype(np.float32)),
    "a cast to truth values": (call("Cast", X, to=9), 1e-300 * DATA),
    "a cast of integers": (call("Cast", LONG, to=11), np.arange(24).reshape(4, 6) + 2**24 + 1),
}

EXACT: dict[str, Call] = {
    "passed on": call("Identity", X),
    "a shape": call("Shape", X),
    "a size": call("Size", X),
}


def program(result: Call) -> IRModule:
    return IRModule.from_expr(Function(tuple(free_vars(result)), result))


def on_the_bare_engine(module: IRModule, data: NDArray[np.generic]) -> NDArray[np.generic]:
    engine = toolchain("openvino")
    source = onnx_kernel_source(engine, module["main"], OPENVINO, module, newest_opset(engine))
    (result,) = engine.load(source).run([data], [None])
    return np.asarray(result)


def on_the_reference(module: IRModule, data: NDArray[np.generic]) -> NDArray[np.generic]:
    with ia.build(module) as executable:
        return np.asarray(executable.run_flat(data)[0])


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("title", ROUNDED)
def test_what_is_refused_is_rounded_by_the_engine(title: str) -> None:
    result, data = ROUNDED[title]
    module = program(result)
    with pytest.raises(CompileError, match="it computes float64 in float32, here in "):
        ia.build(partition_whole(module, OPENVINO))
    assert not np.array_equal(on_the_bare_engine(module, data), on_the_reference(module, data))


@pytest.mark.parametrize("title", ROUNDED)
def test_what_is_rounded_is_given_to_another_toolchain(title: str) -> None:
    result, data = ROUNDED[title]
    module = program(result)
    assert not toolchain("openvino").supports(result)
    assert not operator_predicate("openvino")(result)
    annotated = Sequential([AnnotateTarget(("openvino",))])(module)["main"].body
    assert isinstance(annotated, Call)
    assert assigned_toolchain(annotated) is None
    expected = on_the_reference(module, data)
    np.testing.assert_array_equal(on_the_reference(partition_for(module, "openvino"), data), expected)


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("title", EXACT)
@pytest.mark.parametrize("size", [1.0, 1e300, 1e-300, np.inf])
def test_what_reads_no_values_is_right(title: str, size: float) -> None:
    assert toolchain("openvino").supports(EXACT[title])
    module = program(EXACT[title])
    given = on_the_reference(partition_whole(module, OPENVINO), size * DATA)
    np.testing.assert_array_equal(given, on_the_reference(module, size * DATA))


def test_float64_within_a_program_and_in_a_branch_is_refused_by_the_name_of_its_node() -> None:
    inner = """
    g (float[4] x) => (float[4] y)
    { wide = Cast <to = 11> (x) doubled = Add (wide, wide) y = Cast <to = 1> (doubled) }"""
    branch = """
    g (bool c, float[4] x) => (float[4] y)
    {
      y = If (c) <
        then_branch = a () => (float[4] u) { w = Cast <to = 11> (x) u = Cast <to = 1> (w) },
        else_branch = b () => (float[4] v) { v = Neg (x) }
      >
    }"""
    for text, name in ((inner, "wide"), (branch, "w")):
        with pytest.raises(CompileError, match=rf"here in Cast(.|\n)*at node '{name}'"):
            ia.build(partition_whole(from_onnx(model_of(text)), OPENVINO))
