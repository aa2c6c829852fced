"""Programs as graphs in the DOT language."""

from __future__ import annotations

from intarsia.ir.dot import dot_text
from intarsia.ir.parser import parse_module

PROGRAM = """
def @main(%x: Tensor[(2,), float32], %"a \\"b\\"": Tensor[(2,), float32]) {
  %0 = Sub(%x, %"a \\"b\\""): Tensor[(2,), float32] @device(cpu);
  let %y = Softmax(%0, axis=0);
  Add(%y, float32(0.5))
}
"""


def test_nodes_and_edges() -> None:
    assert dot_text(parse_module(PROGRAM)) == (
        "digraph program {\n"
        "  node [shape=box, fontsize=10];\n"
        "  edge [fontsize=9];\n"
        "  subgraph cluster_0 {\n"
        '    label="@main";\n'
        '    f0_0 [label="%x\\nTensor[(2,), float32]", style=filled, fillcolor=lightgrey];\n'
        '    f0_1 [label="%a \\"b\\"\\nTensor[(2,), float32]", style=filled, fillcolor=lightgrey];\n'
        '    f0_2 [label="%y", style=filled, fillcolor=lightgrey];\n'
        '    f0_3 [label="Sub\\nTensor[(2,), float32]\\nVirtualDevice(cpu)"];\n'
        '    f0_0 -> f0_3 [label="0"];\n'
        '    f0_1 -> f0_3 [label="1"];\n'
        '    f0_4 [label="Softmax\\naxis=0"];\n'
        "    f0_3 -> f0_4;\n"
        '    f0_5 [label="Add\\n1: Tensor[(), float32] constant"];\n'
        '    f0_2 -> f0_5 [label="0"];\n'
        '    f0_6 [label="let %y"];\n'
        "    f0_4 -> f0_6;\n"
        "    f0_5 -> f0_6;\n"
        '    f0_7 [label="result"];\n'
        "    f0_6 -> f0_7;\n"
        "  }\n"
        "}\n"
    )
