"""Events of onnxruntime's profiles, and the nodes that its optimised nodes stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.onnx_models import model_of

from intarsia.toolchain.onnxruntime.optimized_nodes import kernels_of
from intarsia.toolchain.onnxruntime.profiler import NodeEvent, node_events
from intarsia.toolchain.source_graph import SourceGraph


def event(category: str, name: str, start: int, duration: int, operator: str = "") -> dict[str, Any]:
    return {"cat": category, "name": name, "ts": start, "dur": duration, "args": {"op_name": operator}}


def test_events_belong_to_their_run_and_bodies_to_their_node() -> None:
    events = [
        event("Session", "session_initialization", 0, 5),
        event("Node", "a_kernel_time", 11, 3, "Conv"),
        event("Node", "loop_kernel_time", 14, 6, "Loop"),
        event("Node", "inside_kernel_time", 15, 2, "Add"),
        event("Node", "inside_kernel_time", 18, 2, "Add"),
        event("Session", "model_run", 10, 12),
        event("Node", "a_kernel_time", 31, 4, "Conv"),
        event("Session", "model_run", 30, 9),
    ]
    first, second = node_events(events)
    assert first == [NodeEvent("a", "Conv", 11, 3), NodeEvent("loop", "Loop", 14, 6)]
    assert second == [NodeEvent("a", "Conv", 31, 4)]


SOURCE = SourceGraph.of_graph(
    model_of(
        """g (float[2,8] x) => (float[2,8] y) {
            [layer_product] p = MatMul(x, w)
            [layer_bias] b = Add(p, c)
            [layer_act] a = Relu(b)
            [norm_sum] s = Add(a, x)
            [norm_norm] y = LayerNormalization(s, c)
        }""",
        w=np.ones((8, 8), np.float32),
        c=np.ones(8, np.float32),
    ).graph
)


def optimized(graph: str, **weights: Any) -> Any:
    return model_of(graph, imports='"com.microsoft": 1', **weights).graph


def test_a_fused_node_has_the_nodes_between_what_it_reads_and_writes() -> None:
    graph = optimized(
        """g (float[2,8] x) => (float[2,8] y) {
            [fused_layer] a = com.microsoft.FusedGemm(x, w)
            [SkipNorm] y = com.microsoft.SkipLayerNormalization(a, x, c)
        }""",
        w=np.ones((8, 8), np.float32),
        c=np.ones(8, np.float32),
    )
    order = [("fused_layer", "FusedGemm"), ("SkipNorm", "SkipLayerNormalization")]
    first, second = kernels_of(order, graph, SOURCE)
    assert first.nodes == {"layer_product", "layer_bias", "layer_act"}
    assert second.nodes == {"norm_sum", "norm_norm"}
    assert (first.name, set(first.operators)) == ("FusedGemm", {"Gemm"})


def test_convolutions_behind_moved_transpositions_keep_their_nodes() -> None:
    """Names as onnxruntime 1.31 gives them to a converted model; node and tensor names differ."""
    source = SourceGraph.of_graph(
        model_of(
            """g (float[1,8,4,4] x) => (float[1,8,4,4] y) {
                [first] a = Conv(x, w)
                [act] b = Relu(a)
                [pool] p = MaxPool<kernel_shape = [1, 1]>(b)
                [second] d = Conv(p, w)
                [scale] y = Mul(d, f)
            }""",
            w=np.ones((8, 8, 1, 1), np.float32),
            f=np.ones((1, 8, 1, 1), np.float32),
        ).graph
    )
    order = [
        ("b_token_0_nchwc", "Conv"),
        ("p_nchwc", "MaxPool"),
        ("d_nchwc", "Conv"),
        ("y_mul_nchwc", "Conv"),
    ]
    graph = optimized("g (float[2,8] x) => (float[2,8] y) { y = Relu(x) }")
    kernels = kernels_of(order, graph, source)
    assert source.assign(kernels) == [("first", "act"), ("pool",), ("second",), ("scale",)]


def test_names_with_additions() -> None:
    graph = optimized("g (float[2,8] x) => (float[2,8] y) { y = Relu(x) }")
    order = [
        ("layer_product/MatMulAddFusion", "Gemm"),
        ("fused layer_act", "Relu"),
        ("norm_norm_nchwc", "LayerNormalization"),
        ("Reorder_1", "ReorderOutput"),
        ("gemm_input_reshape", "Reshape"),
    ]
    kernels = kernels_of(order, graph, SOURCE)
    assert [set(kernel.nodes) for kernel in kernels] == [
        {"layer_product"},
        {"layer_act"},
        {"norm_norm"},
        set(),
        set(),
    ]
    assert [kernel.is_conversion for kernel in kernels] == [False, False, False, True, True]
