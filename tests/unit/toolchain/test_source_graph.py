"""Which nodes of a model the kernels of an engine compute, where the engine names some of them."""

from __future__ import annotations

import numpy as np
from tests.onnx_models import model_of

from intarsia import to_onnx
from intarsia.ir import Function, IRModule, Span, TensorType, Var
from intarsia.op import call
from intarsia.runtime.kernel_profiler import SourceNode
from intarsia.toolchain.source_graph import EngineKernel, SourceGraph

CHAIN = SourceGraph.of_graph(
    model_of(
        """g (float[1,4,8,8] x) => (float[1,4,8,8] y) {
            [pad] p = Pad(x, widths)
            [conv] c = Conv<kernel_shape=[3,3]>(p, w)
            [norm] n = BatchNormalization(c, s, s, s, s)
            [relu] r = Relu(n)
            [next] d = Conv<kernel_shape=[1,1]>(r, v)
            [sum] a = Add(d, x)
            [last] y = Relu(a)
        }""",
        widths=np.array([0, 0, 1, 1, 0, 0, 1, 1]),
        w=np.ones((4, 4, 3, 3), np.float32),
        v=np.ones((4, 4, 1, 1), np.float32),
        s=np.ones(4, np.float32),
    ).graph
)


def assigned(*kernels: EngineKernel) -> list[list[str]]:
    return [list(names) for names in CHAIN.assign(kernels)]


def kernel(*nodes: str, operators: str = "") -> EngineKernel:
    return EngineKernel("kernel", frozenset(nodes), frozenset(operators.split()))


def test_the_graph() -> None:
    assert list(CHAIN.nodes) == ["pad", "conv", "norm", "relu", "next", "sum", "last"]
    assert CHAIN.nodes["conv"].operator == "Conv"
    assert CHAIN.written["y"] == "last"
    assert CHAIN.read["sum"] == ("next",)
    assert CHAIN.inputs == {"x"}


def test_what_vanishes_is_a_part_of_the_kernel_before_it_and_a_padding_of_the_one_behind_it() -> None:
    assert assigned(kernel("conv"), kernel("next")) == [
        ["pad", "conv", "norm", "relu"],
        ["next", "sum", "last"],
    ]


def test_a_kernel_that_is_named_after_a_later_node_has_the_operator_before_it() -> None:
    named = assigned(kernel("norm", operators="Conv"), kernel("last", operators="Conv"))
    assert named == [["pad", "conv", "norm", "relu"], ["next", "sum", "last"]]


def test_a_kernel_without_nodes_stays_without() -> None:
    assert assigned(kernel("conv", "norm", "relu"), kernel(), kernel("next", "sum", "last"))[1] == []


def test_a_node_may_be_in_two_kernels() -> None:
    first, second = assigned(kernel("conv", "relu"), kernel("conv", "next"))
    assert "conv" in first
    assert "conv" in second


def test_constants_are_no_nodes() -> None:
    graph = model_of(
        "g (float[2] x) => (float[2] y) { [k] k = Neg(w) [sum] y = Add(x, k) }", w=np.ones(2, "f")
    )
    assert list(SourceGraph.of_graph(graph.graph).nodes) == ["sum"]


def test_nodes_without_names_have_those_of_their_first_outputs() -> None:
    graph = model_of("g (float[2] x) => (float[2] y) { a = Neg(x) y = Neg(a) }").graph
    assert list(SourceGraph.of_graph(graph).nodes) == ["a", "y"]


def test_the_parts_of_an_imported_node_are_that_node() -> None:
    x = Var("x", checked_type=TensorType((2,), "float32"))  # type: ignore[arg-type]  # the spelling is accepted
    span = Span("model", "gelu", "Gelu")
    parts = call("Neg", call("Exp", x, span=span), span=span)
    model = to_onnx(IRModule.from_expr(Function((x,), parts)))
    nodes = SourceGraph.of_graph(model.graph).nodes
    assert list(nodes) == ["gelu", "gelu_1"]
    assert list(nodes.values()) == [SourceNode("gelu", "Exp"), SourceNode("gelu", "Neg")]
