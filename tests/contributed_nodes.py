"""One node of a contributed operator as a model, imported and compared with onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from tests.onnx_models import onnxruntime_outputs

from intarsia.frontend.onnx import from_onnx, to_onnx
from intarsia.ir import Call, IRModule, Op, post_order

MICROSOFT = "com.microsoft"


def node_model(
    operator: str,
    inputs: dict[str, Any],
    outputs: int | tuple[int, ...] = 1,
    *,
    constants: tuple[str, ...] = (),
    domain: str = MICROSOFT,
    default_opset: int = 17,
    dynamic: bool = False,
    **attrs: Any,
) -> Any:
    """A model of one node.

    Args:
        operator: Operator type.
        inputs: Arrays by name in order; None for an absent one.
        outputs: Number of outputs that are used, or their positions.
        constants: Names of inputs that are initializers.
        domain: Domain of the operator.
        default_opset: Version of the default domain.
        dynamic: Whether the shapes of inputs are symbols.
        attrs: Attributes.
    """
    used = tuple(range(outputs)) if isinstance(outputs, int) else outputs
    names = [f"y{n}" if n in used else "" for n in range(max(used) + 1)]
    args = [name if array is not None else "" for name, array in inputs.items()]
    while args and not args[-1]:
        args.pop()
    node = helper.make_node(operator, args, names, name="node", domain=domain, **attrs)
    given = {name: array for name, array in inputs.items() if array is not None}
    declared = [
        helper.make_tensor_value_info(
            name,
            helper.np_dtype_to_tensor_dtype(array.dtype),
            [f"{name}_{axis}" for axis in range(array.ndim)] if dynamic else array.shape,
        )
        for name, array in given.items()
        if name not in constants
    ]
    results = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in names if name]
    weights = [numpy_helper.from_array(given[name], name) for name in given if name in constants]
    graph = helper.make_graph([node], "g", declared, results, weights)
    for output in graph.output:
        output.ClearField("type")
    opsets = [helper.make_opsetid("", default_opset)]
    if domain:
        opsets.append(helper.make_opsetid(domain, 1))
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def feeds_of(model: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    return {item.name: inputs[item.name] for item in model.graph.input}


def domains_of(module: IRModule) -> set[str]:
    """The domains of the operators that @main calls."""
    return {
        expr.op.domain
        for expr in post_order(module["main"])
        if isinstance(expr, Call) and isinstance(expr.op, Op)
    }


def assert_defined(
    operator: str,
    inputs: dict[str, Any],
    outputs: int | tuple[int, ...] = 1,
    *,
    rtol: float = 1e-5,
    atol: float = 1e-5,
    **options: Any,
) -> None:
    """The node is imported as ONNX's own operators, which compute what onnxruntime computes for it."""
    model = node_model(operator, inputs, outputs, **options)
    feeds = feeds_of(model, inputs)
    module = from_onnx(model)
    assert domains_of(module) <= {""}
    expected = onnxruntime_outputs(model, feeds)
    computed = onnxruntime_outputs(to_onnx(module["main"]), feeds)
    for result, array in zip(computed, expected, strict=True):
        assert result.dtype == array.dtype
        assert result.shape == array.shape
        np.testing.assert_allclose(result.astype(np.float64), array.astype(np.float64), rtol=rtol, atol=atol)


def assert_opaque(operator: str, inputs: dict[str, Any], **options: Any) -> None:
    """The node stays an operator of its domain, which onnxruntime runs as it runs the model."""
    model = node_model(operator, inputs, **options)
    feeds = feeds_of(model, inputs)
    module = from_onnx(model)
    assert MICROSOFT in domains_of(module)
    computed = onnxruntime_outputs(to_onnx(module["main"]), feeds)
    for result, array in zip(computed, onnxruntime_outputs(model, feeds), strict=True):
        np.testing.assert_array_equal(result, array)
