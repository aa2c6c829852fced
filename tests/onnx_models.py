"""Small ONNX models that tests are made of, written in onnx's text form."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper, parser


def model_of(graph: str, *, opset: int = 17, ir_version: int = 8, imports: str = "", **weights: Any) -> Any:
    """A model from the text of its graph: `g (float[2,3] x) => (float[2,3] y) { y = Neg(x) }`.

    Args:
        graph: The graph; its functions may follow.
        opset: Version of the default domain.
        ir_version: Version of the file format.
        imports: Further domains, as `"my": 1`.
        weights: Arrays that become initializers of the main graph.
    """
    domains = ", ".join(filter(None, (f'"": {opset}', imports)))
    model = parser.parse_model(f"<ir_version: {ir_version}, opset_import: [{domains}]> {graph}")
    for name, array in weights.items():
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
    return model


def onnxruntime_outputs(model: Any, feeds: dict[str, Any]) -> list[Any]:
    """What onnxruntime computes, without optimisations."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    providers = ["CPUExecutionProvider"]
    data = model if isinstance(model, bytes) else model.SerializeToString()
    session = onnxruntime.InferenceSession(data, options, providers=providers)
    return list(session.run(None, feeds))


def reference_outputs(model: Any, feeds: dict[str, Any]) -> list[Any]:
    """What onnx's reference evaluator computes."""
    from onnx.reference import ReferenceEvaluator

    return list(ReferenceEvaluator(model).run(None, feeds))


def saved(model: Any, path: Any, **external: Any) -> Any:
    """Write a model to a file, its weights in others if arguments of `onnx.save` say so; returns the path."""
    onnx.save(model, path, **external)
    return path
