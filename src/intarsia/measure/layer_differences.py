"""Differences of every value inside a program: the first one that is wrong names the operator at fault."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from intarsia.ir import (
    Call,
    Expr,
    Function,
    If,
    IRModule,
    Op,
    TensorType,
    Tuple,
    TupleGetItem,
    Var,
    post_order,
)
from intarsia.ir.traversal import children
from intarsia.measure.element_kind import ElementKind, element_kind
from intarsia.measure.judge.exposed_program import exposing
from intarsia.measure.judge.gate import Gate
from intarsia.measure.judge.gate_report import Array, GateReport, structure_report
from intarsia.support.errors import UnsupportedModelError


@dataclass(frozen=True, slots=True)
class Layer:
    """A value inside a program.

    Attributes:
        name: Name of the node that computes it, with the number of the output if the node has several.
        operator: Operator type of the node.
        output: Position among the outputs of the program with all values.
    """

    name: str
    operator: str
    output: int


@dataclass(frozen=True, slots=True)
class LayeredProgram:
    """A program that returns the values inside it.

    Attributes:
        module: Program with all values as outputs.
        layers: The values, in an executable order.
    """

    module: IRModule
    layers: tuple[Layer, ...]

    @classmethod
    def of(cls, module: IRModule) -> LayeredProgram:
        """Return a program with its inner values as outputs; those in branches and bodies stay inside.

        Raises:
            UnsupportedModelError: It computes no tensor from its inputs.
        """
        body = module["main"].body
        results = {expr: number for number, expr in enumerate(_fields(body))}
        exprs = _inner_values(body)
        if not exprs:
            raise UnsupportedModelError("the model computes no tensor from its inputs")
        exposed = [expr for expr in exprs if expr not in results]
        positions = results | {expr: len(_fields(body)) + number for number, expr in enumerate(exposed)}
        layers = tuple(Layer(*_name(expr), positions[expr]) for expr in exprs)
        return cls(exposing(module, exposed), layers)


@dataclass(frozen=True, slots=True)
class LayerDifference:
    """The difference of a value from the reference.

    Attributes:
        layer: The value.
        report: Verdict, with the largest difference.
    """

    layer: Layer
    report: GateReport


def layer_differences(
    program: LayeredProgram, gate: Gate, outputs: Sequence[Array]
) -> tuple[LayerDifference, ...]:
    """Return the difference of each value of a program from the reference, in the order of the program.

    Args:
        program: The program.
        gate: Gate of the program with all values as outputs.
        outputs: Outputs of that program.
    """
    if len(outputs) != len(gate.names):
        report = structure_report(f"the result has {len(outputs)} values, expected {len(gate.names)}")
        return tuple(LayerDifference(layer, report) for layer in program.layers)
    reports: dict[int, GateReport] = {}
    for check in gate.checks:
        report = check.check(outputs)
        reports |= dict.fromkeys(check.positions, report)
    return tuple(LayerDifference(layer, reports[layer.output]) for layer in program.layers)


def relative_difference(first: Array, second: Array) -> float:
    """Return the largest difference of two values, relative to the largest magnitude of the first.

    It is infinite for other shapes, and where only one value is finite.
    """
    if first.shape != second.shape:
        return math.inf
    if element_kind(first.dtype) is ElementKind.TEXT:
        return 0.0 if np.array_equal(first, second) else math.inf
    if not first.size:
        return 0.0
    kind = np.complex128 if element_kind(first.dtype) is ElementKind.COMPLEX else np.float64
    wide, other = first.astype(kind), second.astype(kind)
    is_equal = (wide == other) | (np.isnan(wide) & np.isnan(other))
    with np.errstate(invalid="ignore"):
        off = np.where(is_equal, 0.0, np.abs(wide - other))
    largest = float(np.max(np.abs(wide), where=np.isfinite(wide), initial=0.0))
    worst = float(np.max(np.where(np.isnan(off), math.inf, off)))
    return worst / largest if largest else worst


def _fields(body: Expr) -> tuple[Expr, ...]:
    return body.fields if isinstance(body, Tuple) else (body,)


class _Scopes:
    """Expressions that a walk does not enter: functions and branches, whose values may not be computed."""

    def __contains__(self, expr: object) -> bool:
        return isinstance(expr, Function | If)


def _inner_values(body: Expr) -> list[Expr]:
    """Return the tensors that operators compute from inputs, in an executable order."""
    varying: dict[Expr, bool] = {}
    values: list[Expr] = []
    for expr in post_order(body, stop=_Scopes()):
        varying[expr] = isinstance(expr, Var) or any(
            varying.get(child, isinstance(child, If)) for child in children(expr)
        )
        is_field = isinstance(expr, TupleGetItem) and _is_operator(expr.tuple_value)
        if varying[expr] and (_is_operator(expr) or is_field) and isinstance(expr.checked_type, TensorType):
            values.append(expr)
    return values


def _is_operator(expr: Expr) -> bool:
    return isinstance(expr, Call) and isinstance(expr.op, Op)


def _name(expr: Expr) -> tuple[str, str]:
    """Return the name of the node that computes a value, and its operator."""
    call = expr.tuple_value if isinstance(expr, TupleGetItem) else expr
    assert isinstance(call, Call)
    operator = str(call.op)
    name = operator if call.span is None else call.span.node
    return (f"{name}[{expr.index}]" if isinstance(expr, TupleGetItem) else name), operator
