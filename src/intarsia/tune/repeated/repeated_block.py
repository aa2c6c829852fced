"""What lies between two values of a chain."""

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
    """Values of which only the last, and those that the program also gives out, are used elsewhere.

    Attributes:
        graph: The values of the program.
        members: Their numbers, ascending.
    """

    graph: ValueGraph
    members: tuple[int, ...]

    @classmethod
    def between(cls, graph: ValueGraph, top: int, bottom: int | None) -> RepeatedBlock:
        """What is computed of one value, and whatever else is needed, to get to another that it leads to.

        Values with other uses, such as a mask for all layers, are left out: a block is given them. Linear in
        what `top` post-dominates and `bottom` does not.

        Args:
            graph: The values.
            top: The number of the last value.
            bottom: The number of the value that the block begins behind; None if it begins with parameters.
        """
        found, waiting = list[int](), [top]
        while waiting:
            at = waiting.pop()
            found.append(at)
            waiting.extend(child for child in graph.children[at] if child != bottom)
        members = {top}
        for at in sorted(found, reverse=True):
            is_open = at != top and not isinstance(graph.values[at], Var)
            if is_open and all(consumer in members for consumer in graph.consumers[at]):
                members.add(at)
        return cls(graph, tuple(sorted(members)))

    @property
    def outputs(self) -> tuple[Expr, ...]:
        """The values that are used elsewhere, in evaluation order."""
        *others, last = self.members
        values, escaping = self.graph.values, self.graph.escaping
        return (*(values[at] for at in others if at in escaping), values[last])

    @property
    def arguments(self) -> tuple[Expr, ...]:
        """What it is given, in order of first use."""
        values = self.graph.values
        inside = {values[at] for at in self.members}
        used = dict.fromkeys(each for at in self.members for each in operands(values[at]))
        return tuple(each for each in used if each not in inside)

    @property
    def operators(self) -> int:
        """How many operators and functions are called in it."""
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
        """Equal for blocks that differ in the values of floating-point tensors only, but for scalars.

        None where it calls global functions, which are no part of it, or has a type that is not known.
        """
        body = _value(self.outputs)
        arguments = self.arguments
        below = tuple(post_order(body, stop=set(arguments)))
        is_open = any(isinstance(each, GlobalVar) for each in below)
        typed = (each for each in (*arguments, *below) if not isinstance(each, (Op, GlobalVar, Function)))
        if is_open or any(each.checked_type is None for each in typed):
            return None
        weights = [each for each in below if isinstance(each, Constant) and _is_weight(each)]
        params = {each: Var("", checked_type=each.checked_type) for each in (*arguments, *weights)}
        lifted = substitute(body, dict(params))
        return structural_digest(Function(tuple(params[each] for each in arguments), lifted))


def _value(outputs: tuple[Expr, ...]) -> Expr:
    return outputs[0] if len(outputs) == 1 else Tuple(outputs)


def _is_weight(constant: Constant) -> bool:
    return DType.of(constant.data).is_float and constant.data.size > 1
