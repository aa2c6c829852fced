"""Sets of nodes of a dataflow graph that can become a function (seed collage_rfc, SubGraph).

sub_graph             the set, what flows in and out of it, and the parts of it that are to be functions
boundary              what flows in and out: entry, exit, input, output
sub_graph_config      which shapes are allowed
validity              why a set of nodes cannot become a function
touching              whether two sub-graphs can be joined
quotient              whether several sub-graphs can be contracted at once
constant_placement    whether weights are written into a function or handed to it
outline, contraction
                      a function made of a sub-graph, and calls of such functions in its place
extract               a sub-graph as a program of its own, for measuring
parallel_rewrite      a function with many sub-graphs called
"""

from intarsia.collage.sub_graph.constant_placement import ConstantPlacement
from intarsia.collage.sub_graph.extract import extract_function, extract_module
from intarsia.collage.sub_graph.parallel_rewrite import parallel_rewrite
from intarsia.collage.sub_graph.quotient import quotient_cycle
from intarsia.collage.sub_graph.sub_graph import NestedSubGraph, SubGraph
from intarsia.collage.sub_graph.sub_graph_config import SubGraphConfig
from intarsia.collage.sub_graph.touching import are_self_contained, are_touching

__all__ = [
    "ConstantPlacement",
    "NestedSubGraph",
    "SubGraph",
    "SubGraphConfig",
    "are_self_contained",
    "are_touching",
    "extract_function",
    "extract_module",
    "parallel_rewrite",
    "quotient_cycle",
]
