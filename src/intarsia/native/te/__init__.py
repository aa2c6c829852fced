"""Tensor expressions: tensors declared by what their elements are (seed ansor_minimum).

A = te.placeholder((512, 512), name="A")
B = te.placeholder((512, 512), name="B")
k = te.reduce_axis(512, "k")
C = te.compute((512, 512), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
"""

from intarsia.native.te.combiner import Combiner, Reduction
from intarsia.native.te.compute import compute, compute_many, extern, placeholder, reduce_axis
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import (
    IF_THEN_ELSE,
    call,
    const,
    equal,
    erf,
    exp,
    highest,
    if_then_else,
    log,
    logical_and,
    logical_not,
    logical_or,
    lowest,
    max,  # noqa: A004 - the field's name
    maximum,
    min,  # noqa: A004 - the field's name
    minimum,
    not_equal,
    power,
    prod,
    reduce,
    select,
    sqrt,
    sum,  # noqa: A004 - the field's name
    tanh,
)
from intarsia.native.te.iter_var import IterKind, IterVar
from intarsia.native.te.tensor import ComputeOp, ExternOp, Operation, PlaceholderOp, Tensor

__all__ = [
    "IF_THEN_ELSE",
    "Combiner",
    "ComputeOp",
    "Expression",
    "ExternOp",
    "IterKind",
    "IterVar",
    "Operation",
    "PlaceholderOp",
    "Reduction",
    "Tensor",
    "call",
    "compute",
    "compute_many",
    "const",
    "equal",
    "erf",
    "exp",
    "extern",
    "highest",
    "if_then_else",
    "log",
    "logical_and",
    "logical_not",
    "logical_or",
    "lowest",
    "max",
    "maximum",
    "min",
    "minimum",
    "not_equal",
    "placeholder",
    "power",
    "prod",
    "reduce",
    "reduce_axis",
    "select",
    "sqrt",
    "sum",
    "tanh",
]
