"""Kernels of a region plan have the names of the nodes that they compute."""

from __future__ import annotations

import numpy as np
from tests.onnx_models import model_of

from intarsia import from_onnx
from intarsia.ir import Function
from intarsia.native.graph import plan_region
from intarsia.native.machine.isa import Isa


def test_fused_nodes_and_conversions() -> None:
    graph = """g (float[1,16,8,8] x) => (float[1,16,4,4] y) {
        [first] c = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w)
        [second] r = Relu(c)
        [third] y = MaxPool<kernel_shape=[2,2], strides=[2,2]>(r)
    }"""
    main = from_onnx(model_of(graph, w=np.ones((16, 16, 3, 3), np.float32)))["main"]
    assert isinstance(main, Function)
    plan = plan_region(main, Isa.host())
    nodes = [kernel.nodes for kernel in plan.kernels if not kernel.is_conversion]
    assert nodes == [("first", "second"), ("third",)]
    assert all(kernel.nodes == () for kernel in plan.kernels if kernel.is_conversion)
    assert plan.kernels[-1].is_conversion  # from blocks of channels to the plain result
