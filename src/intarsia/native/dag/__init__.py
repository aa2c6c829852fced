"""Computations as graphs of tensor operations, and facts about them."""

from intarsia.native.dag.access import AccessAnalyzer, SimpleAccess, simple_access
from intarsia.native.dag.compute_dag import ComputeDAG
from intarsia.native.dag.flop_count import UNKNOWN, flop_count
from intarsia.native.dag.keys import structural_key, workload_key
from intarsia.native.dag.loop_name import loop_name
from intarsia.native.dag.print_dag import dag_text, expression_text

__all__ = [
    "UNKNOWN",
    "AccessAnalyzer",
    "ComputeDAG",
    "SimpleAccess",
    "dag_text",
    "expression_text",
    "flop_count",
    "loop_name",
    "simple_access",
    "structural_key",
    "workload_key",
]
