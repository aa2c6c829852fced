"""Decided packing of the right matrices of products, as an attribute of the operations."""

from __future__ import annotations

from dataclasses import replace

from intarsia.native.dag import AccessAnalyzer, ComputeDAG
from intarsia.native.dag.gemm_form import gemm_form
from intarsia.native.dag.respliced import respliced
from intarsia.native.te import ComputeOp, Tensor
from intarsia.native.te.op_attrs import LAYOUT_FREE, PACKING


def with_packing(dag: ComputeDAG, packing: str) -> ComputeDAG:
    """Return a DAG whose products of matrices read the right matrix as decided.

    A constant that is not to be packed is no longer free to be stored in another layout.

    Args:
        dag: The DAG.
        packing: A value of `MatrixPacking`; a product that has no such schedule keeps its rule.
    """
    analyzer = AccessAnalyzer(dag)
    products = [op for op in dag.ops if isinstance(op, ComputeOp) and gemm_form(op, analyzer) is not None]
    for number in [dag.op_ids[op] for op in products]:
        op = dag.ops[number]
        assert isinstance(op, ComputeOp), "it is a product"
        changed = replace(op, attrs=op.attrs.updated(**{LAYOUT_FREE: None, PACKING: packing}))
        dag = respliced(dag, number, (changed,), {Tensor(op): Tensor(changed)}, {})
    return dag
