"""Where a program is to be quantised, as annotations in the program."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from intarsia.ir import (
    Attrs,
    Call,
    Constant,
    Expr,
    Function,
    IRModule,
    Op,
    Tuple,
    children,
    with_children,
    with_fields,
)
from intarsia.op.opset import INTARSIA_DOMAIN
from intarsia.op.simulated_quantize_op import PER_TENSOR, SIMULATED_QUANTIZE
from intarsia.op.work import multiply_adds
from intarsia.passes.quantise.heavy_layer import HeavyLayer, heavy_layers, is_annotation, top_level
from intarsia.passes.quantise.integer_values import IntegerValues, before_moves, integer_values, source_of
from intarsia.support.errors import UsageError
from intarsia.transform import ModulePass, PassContext, register_pass
from intarsia.transform.diagnostic import DiagnosticLevel

OPERATORS: Final = ("Add", "AveragePool", "Concat", "GlobalAveragePool")
"""Operators that are computed in integers between heavy layers.

Without them the integer chain breaks at each residual connection: MobileNetV2 is 1.3 to 1.4 times slower
(shared/reference/narrow_types.md, section 1)."""

_QUANTISED: Final = frozenset({"QuantizeLinear", "DynamicQuantizeLinear"})


@register_pass
@dataclass(frozen=True)
class AnnotateQuantization(ModulePass, opt_level=0, required=("InferType",)):
    """Marks the values of @main that a quantised program rounds to 8 bits.

    Convolutions, Gemm and MatMul with constant weights are computed in integers, and transposed convolutions
    of one group: their input is marked as uint8 with one scale, their weights as int8 with a scale for each
    output channel. Operators of `operators` between them are computed in integers as well, where all that
    they read and all that reads them is; their inputs are marked. Activations and added constants belong to
    the operator before them. A mark stands before operators that only move elements, such as MaxPool and
    Reshape, which then move integers.

    A marked value that an integer operator computes replaces that value everywhere but in the results, so
    that no float32 copy of it is needed. Other values are replaced only where integer operators read them: a
    residual connection around a layer normalisation stays float32.

    The marks are calls of intarsia::simulated_quantize without a scale, which return their argument:
    `CalibrateQuantization` gives them scales, and `RealizeQuantization` makes integers of them. A program
    with marks, or that is quantised already, stays as it is.

    Source: the quantise group of TVM's Relay (annotate, calibrate, realize; seed relax_pass_infra).

    Attributes:
        layers: Numbers of the convolutions and products to quantise, in the order of the program, from 0; all
            if empty.
        operators: Names of further operators to compute in integers.

    Raises:
        UsageError: A number of a layer is negative.

    Before:
        def @main(%x: Tensor[(1, 2), float32]) { Relu(MatMul(%x, meta[Constant][0])) }
    After:
        def @main(%x: Tensor[(1, 2), float32]) {
          %a = intarsia::simulated_quantize(%x, axis=-1, dtype="uint8", key=0);
          %w = intarsia::simulated_quantize(meta[Constant][0], axis=1, dtype="int8", key=1);
          Relu(MatMul(%a, %w))
        }
    Constants:
        ones(2, 3)
    """

    layers: tuple[int, ...] = ()
    operators: tuple[str, ...] = OPERATORS

    def __post_init__(self) -> None:
        """Check the numbers."""
        if any(number < 0 for number in self.layers):
            raise UsageError(f"layers has {min(self.layers)}, expected numbers from 0")

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:  # of all passes
        """The module with marks in @main; linear in the program."""
        return mod.with_function("main", self._annotated(mod["main"], ctx)) if "main" in mod else mod

    def _annotated(self, function: Function, ctx: PassContext) -> Function:
        nodes = tuple(top_level(function.body))
        if any(is_annotation(node) or _is_quantised(node) for node in nodes):
            return function
        layers = [
            layer for layer in heavy_layers(nodes) if not self.layers or layer.number in set(self.layers)
        ]
        if ctx.is_diagnosing:
            _diagnose(nodes, {layer.call for layer in layers}, ctx)
        if not layers or function.body not in nodes:
            return function
        results = set(function.body.fields if isinstance(function.body, Tuple) else (function.body,))
        integers = integer_values(nodes, layers, self.operators, results)
        return with_fields(function, body=_Annotation(nodes, layers, integers).body())


def _diagnose(nodes: tuple[Expr, ...], layers: Collection[Call], ctx: PassContext) -> None:
    """Diagnose the convolutions and products that stay in float32."""
    heavy = {layer.call for layer in heavy_layers(nodes)}
    for node in nodes:
        if not isinstance(node, Call) or not multiply_adds(node) or node in layers:
            continue
        reason = "the option layers leaves it out" if node in heavy else _obstacle(node)
        ctx.diagnose(node, DiagnosticLevel.MISSED, f"is not quantised: {reason}")


def _obstacle(call: Call) -> str:
    """Return why a product is no layer that can be quantised."""
    if len(call.args) > 1 and not isinstance(call.args[1], Constant):
        return "its weights are no constant"
    layers = "Conv, ConvTranspose, Gemm and MatMul of float32 with plain attributes"
    return f"only {layers} are, unlike this {call.op}"


def _is_quantised(node: Expr) -> bool:
    return isinstance(node, Call) and isinstance(node.op, Op) and node.op.name in _QUANTISED


class _Annotation:
    """Rewrites one function; each marked value has one mark."""

    def __init__(
        self, nodes: tuple[Expr, ...], layers: Collection[HeavyLayer], integers: IntegerValues
    ) -> None:
        self._nodes, self._integers = nodes, integers
        self._keys = {node: number for number, node in enumerate(_values(nodes))}
        self._layers = {layer.call: layer for layer in layers}
        self._sources = {
            source_of(call.args[position], integers.values)
            for call, position in integers.arguments
            if isinstance(call, Call)
        }
        self._new: dict[Expr, Expr] = {}
        self._marks: dict[tuple[Expr, int], Expr] = {}

    def body(self) -> Expr:
        """Return the body with marks."""
        last = self._nodes[-1]
        for node in self._nodes:
            is_result = node is last and isinstance(node, Tuple)
            new = tuple(
                self._new.get(child, child) if is_result else self._argument(node, position, child)
                for position, child in _positions(node)
            )
            self._new[node] = with_children(node, new)
        return self._new[last]

    def _argument(self, user: Expr, position: int, value: Expr) -> Expr:
        layer = self._layers.get(user) if isinstance(user, Call) else None
        if layer is not None and position == 1:
            return self._mark(value, layer.weight_axis, "int8")
        is_integer = value in self._integers.values
        needs_scale = (user, position) in self._integers.arguments
        if value in self._sources and (is_integer or needs_scale):
            return self._mark(value, PER_TENSOR, "uint8")
        return self._new.get(value, value)

    def _mark(self, value: Expr, axis: int, dtype: str) -> Expr:
        if (value, axis) not in self._marks:
            # A move keeps the range: with fewer layers in integers, a mark may stand behind it.
            key = self._keys[before_moves(value)]
            attrs = Attrs({"axis": axis, "dtype": dtype, "key": key})
            op, args = Op(SIMULATED_QUANTIZE, INTARSIA_DOMAIN), (self._new.get(value, value),)
            mark = Call(op, args, attrs, checked_type=value.checked_type)
            self._marks[value, axis] = with_fields(mark, span=value.span, virtual_device=value.virtual_device)
        return self._marks[value, axis]


def _values(nodes: tuple[Expr, ...]) -> list[Expr]:
    """Return the expressions that are values: all but operators."""
    return [node for node in nodes if not isinstance(node, Op)]


def _positions(node: Expr) -> list[tuple[int, Expr]]:
    """Return the children of an expression with their positions; arguments of a call count from 0."""
    first = -1 if isinstance(node, Call) else 0
    return list(enumerate(children(node), first))
