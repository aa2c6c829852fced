"""What must be equal for a plan to fit a program, and what differs if it is not, for people."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

import numpy as np

from intarsia.ir import (
    Call,
    Constant,
    DType,
    Expr,
    Function,
    IRModule,
    Op,
    post_order,
    structural_digest,
    substitute,
    with_fields,
)
from intarsia.ir.canonical import is_weight
from intarsia.support.digest import digest_text

_NAMED: Final = 3
"""Largest number of operators that an error counts one by one."""


@dataclass(frozen=True, slots=True)
class ProgramFacts:
    """A program as a plan records it: its structure, without names, input ranges and what training changes.

    Attributes:
        digest: Digest of all functions; equal for programs whose nodes a plan numbers alike.
        inputs: Parameters of @main with their types, in order.
        operators: Number of occurrences of each operator in all functions.
    """

    digest: str
    inputs: tuple[str, ...]
    operators: dict[str, int]

    @classmethod
    def of(cls, mod: IRModule) -> ProgramFacts:
        """The facts of a module."""
        functions = {var.name: function for var, function in mod.graph_functions.items()}
        digests = [f"{name}:{_digest(function)}" for name, function in sorted(functions.items())]
        counts = Counter(
            str(expr.op)
            for expr in post_order(*functions.values())
            if isinstance(expr, Call) and isinstance(expr.op, Op)
        )
        inputs = tuple(f"{param.name}: {param.checked_type}" for param in functions["main"].params)
        return cls(digest_text(digests), inputs, dict(sorted(counts.items())))

    def difference(self, other: ProgramFacts) -> str:
        """What another program has that differs, in words; "" if a plan for this one fits the other, too."""
        if self.digest == other.digest:
            return ""
        if len(self.inputs) != len(other.inputs):
            return f"it has {len(self.inputs)} inputs, the model has {len(other.inputs)}"
        types = [
            (mine.partition(": "), theirs.partition(": "))
            for mine, theirs in zip(self.inputs, other.inputs, strict=True)
        ]
        for (name, _, here), (_, _, there) in types:
            if here != there:
                return f"its input {name} is {here}, that of the model {there}"
        names = sorted({*self.operators, *other.operators})
        counts = [(name, self.operators.get(name, 0), other.operators.get(name, 0)) for name in names]
        different = [
            f"{name} {mine} times, the model {theirs}" for name, mine, theirs in counts if mine != theirs
        ]
        if different:
            more = len(different) - _NAMED
            rest = f"; and {more} more operators differ" if more > 0 else ""
            return "it has " + "; ".join(different[:_NAMED]) + rest
        return "its operators are the same, but their attributes, types or connections are not"


def _digest(function: Function) -> str:
    """Of the structure; what training changes counts by its shape, be it one bias of two elements."""
    bare = with_fields(function, attrs=function.attrs.updated(input_ranges=None, output_names=None))
    trained: dict[Expr, Expr] = {
        expr: Constant(np.zeros_like(expr.data))
        for expr in post_order(bare)
        if isinstance(expr, Constant) and _is_trained(expr) and not is_weight(expr)
    }
    return structural_digest(substitute(bare, trained), weights=False)


def _is_trained(constant: Constant) -> bool:
    return constant.data.size > 1 and DType.of(constant.data).is_float
