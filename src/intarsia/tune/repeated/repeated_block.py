"""A block of values between two values of a dominator chain."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.ir import (
    NO_ATTRS,
    Call,
    Constant,
    DType,
    Expr,
    Function,
    GlobalVar,
    Op,
    Tuple,
    Var,
    post_order,
    structural_digest,
    substitute,
)
from intarsia.passes.regions.outline import Outline, outline_params
from intarsia.tune.repeated.value_graph import ValueGraph, operands


@dataclass(frozen=True, slots=True, eq=False)
class RepeatedBlock:
    """Values of which only the last, and results of the program, are used outside the block.

    Attributes:
        graph: The value graph of the program.
        members: Numbers of the block's values, ascending.
    """

    graph: ValueGraph
    members: tuple[int, ...]

    @classmethod
    def between(cls, graph: ValueGraph, top: int, bottom: int | None) -> RepeatedBlock:
        """Return the block that computes `top` from `bottom`.

        Values with other uses, such as a mask for all layers, are arguments of the block. Linear in the
        number of values that `top` post-dominates and `bottom` does not.

        Args:
            graph: The value graph.
            top: The number of the last value.
            bottom: The number of the value before the block; None if the block begins with parameters.
        """
        reached, waiting = list[int](), [top]
        while waiting:
            at = waiting.pop()
            reached.append(at)
            waiting.extend(child for child in graph.children[at] if child != bottom)
        members = {top}
        # In descending order all consumers of a value come before it: one pass finds the closed set.
        for at in sorted(reached, reverse=True):
            is_open = at != top and not isinstance(graph.values[at], Var)
            if is_open and all(consumer in members for consumer in graph.consumers[at]):
                members.add(at)
        return cls(graph, tuple(sorted(members)))

    @property
    def outputs(self) -> tuple[Expr, ...]:
        """The values that are used outside the block, in evaluation order."""
        *others, last = self.members
        values, escaping = self.graph.values, self.graph.escaping
        return (*(values[at] for at in others if at in escaping), values[last])

    @property
    def arguments(self) -> tuple[Expr, ...]:
        """The values that the block uses from outside, in order of first use."""
        values = self.graph.values
        inside = {values[at] for at in self.members}
        used = dict.fromkeys(value for at in self.members for value in operands(values[at]))
        return tuple(value for value in used if value not in inside)

    @property
    def operators(self) -> int:
        """Number of calls of operators and functions in the block."""
        return sum(isinstance(self.graph.values[at], Call) for at in self.members)

    @property
    def outline(self) -> Outline:
        """The block as a function."""
        outputs = self.outputs
        params = outline_params(self.arguments)
        body = substitute(_value(outputs), dict(params))
        results = body.fields if isinstance(body, Tuple) and len(outputs) > 1 else (body,)
        return Outline.of(params, results, outputs, NO_ATTRS)

    @property
    def digest(self) -> str | None:
        """Digest that ignores the values of floating-point tensors, except scalars.

        None if the block calls global functions, which are outside of it, or has an unknown type.
        """
        body = _value(self.outputs)
        arguments = self.arguments
        below = tuple(post_order(body, stop=set(arguments)))
        is_open = any(isinstance(expr, GlobalVar) for expr in below)
        typed = (expr for expr in (*arguments, *below) if not isinstance(expr, (Op, GlobalVar, Function)))
        if is_open or any(expr.checked_type is None for expr in typed):
            return None
        weights = [expr for expr in below if isinstance(expr, Constant) and _is_weight(expr)]
        params = {expr: Var("", checked_type=expr.checked_type) for expr in (*arguments, *weights)}
        lifted = substitute(body, dict(params))
        return structural_digest(Function(tuple(params[expr] for expr in arguments), lifted))


def _value(outputs: tuple[Expr, ...]) -> Expr:
    return outputs[0] if len(outputs) == 1 else Tuple(outputs)


def _is_weight(constant: Constant) -> bool:
    return DType.of(constant.data).is_float and constant.data.size > 1
