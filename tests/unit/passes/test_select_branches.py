"""SelectBranches: small branches as a choice of values, others as they are."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, parser
from tests.onnx_models import onnxruntime_outputs

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.ir import If, IRModule, post_order
from intarsia.passes import SelectBranches, partition_whole
from intarsia.passes.infer_type import InferType
from intarsia.runtime.plan import RunKernel
from intarsia.target import Target

EXIT = """
early (float[2,8] x, bool{cond} sure) => (float[2,8] y, float[2,1] z)
<int64[1] last = {{1}}, int64[2] rows = {{0, 1}}>
{{
  y, z = If (sure) <
    then_branch = short () => (float[2,8] y1, float[2,1] z1) {{
      y1 = {short}
      z1 = ReduceMax <keepdims = 1> (x, last)
    }},
    else_branch = long () => (float[2,8] y2, float[2,1] z2) {{
      square = Mul(x, x)
      y2 = Exp(square)
      z2 = ReduceMin <keepdims = 1> (square, last)
    }}>
}}
"""
X = np.linspace(-1, 1, 16, dtype=np.float32).reshape(2, 8)


def model(short: str = "Relu(x)", cond: str = "") -> ModelProto:
    return parsed(EXIT.format(short=short, cond=cond))


def parsed(text: str) -> ModelProto:
    return parser.parse_model('<ir_version: 10, opset_import: ["" : 21]>' + text)


def branches(module: IRModule) -> int:
    return sum(isinstance(expr, If) for expr in post_order(module["main"]))


@pytest.mark.parametrize("cond", ["", "[1]", "[1,1]"])
def test_a_small_branch_becomes_a_choice_of_values(cond: str) -> None:
    proto = model(cond=cond)
    module = from_onnx(proto)
    after = InferType()(SelectBranches()(module))
    assert (branches(module), branches(after)) == (1, 0)
    assert after["main"].result_type == module["main"].result_type
    shape = tuple(map(int, filter(str.isdigit, cond)))
    with build(after) as executable:
        for truth in (True, False):
            sure = np.full(shape, truth)
            expected = onnxruntime_outputs(proto, {"x": X, "sure": sure})
            for found, wanted in zip(executable.run_flat(X, sure), expected, strict=True):
                np.testing.assert_allclose(found, wanted, rtol=1e-6)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "short",
    [
        "RandomUniformLike <seed = 1.0> (x)",
        "Gather <axis = 0> (x, rows)",
        "Cast <to = 1> (quotient)",
        "Mod <fmod = 1> (x, x)",
    ],
)
def test_what_may_fail_or_draws_stays_a_branch(short: str) -> None:
    text = EXIT.format(short=short, cond="").replace(
        "y1 =", "whole = Cast <to = 7> (x) quotient = Div(whole, whole) y1 ="
    )
    assert branches(SelectBranches()(from_onnx(parsed(text)))) == 1


def test_a_branch_with_much_work_stays() -> None:
    module = from_onnx(model())
    assert branches(SelectBranches(most_work=100)(module)) == 0
    assert branches(SelectBranches(most_work=20)(module)) == 1


@pytest.mark.parametrize(("inner", "left"), [("Neg(x)", 0), ("Gather <axis = 0> (x, rows)", 2)])
def test_a_branch_in_a_branch(inner: str, left: int) -> None:
    nested = "If (sure) <then_branch = a () => (float[2,8] u) {{ u = Relu(x) }}, {}>"
    other = f"else_branch = b () => (float[2,8] v) {{ v = {inner} }}"
    module = from_onnx(model(nested.format(other)))
    assert branches(module) == 2
    assert branches(SelectBranches()(module)) == left


def test_a_program_with_small_branches_is_one_kernel_of_native() -> None:
    target = Target.for_toolchain("native", threads=1)
    with build(partition_whole(from_onnx(model()), target)) as executable:
        (step,) = executable.plan.blocks["main"].steps
        assert isinstance(step, RunKernel)
        assert [kernel.source.toolchain for kernel in executable.kernels] == ["native"]
