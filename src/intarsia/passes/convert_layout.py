"""Images channels first or channels last, with as few transposes as possible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from intarsia.ir import Call, Function, IRModule, Op, TensorType, post_order
from intarsia.op.layout import LAYOUT_OPERATORS
from intarsia.passes.functions.sealed import is_sealed
from intarsia.passes.layouts.transposed_values import TransposedValues
from intarsia.support.errors import UsageError
from intarsia.transform import DiagnosticLevel, FunctionPass, PassContext, register_pass

LAYOUTS: Final = ("NCHW", "NHWC")


@register_pass
@dataclass(frozen=True)
class ConvertLayout(FunctionPass, opt_level=3, required=("InferType",)):
    """Makes operators on images work in one layout, and moves transposes until they cancel.

    A Transpose is held back: operators that do not mind the order of axes, or whose axes can be renamed, are
    applied to the value before it (`op.layout`), constants are transposed at compile time, and it is put
    where something needs the value as it was. Two that meet become one, or nothing.

    * "NCHW" is ONNX's own layout: models exported from channels-last frameworks, where each convolution
      stands between two transposes, lose these.
    * "NHWC" replaces each convolution, pooling, normalization by a function that is the operator channels
      last (`layout_operator`; docs/decisions/0007), and what stands between them works channels last too.

    The names stand for all ranks: images have one to three spatial axes. Blocked layouts such as NCHW8c are
    no permutations of axes; there is no operator for them. A function without operators to convert is
    changed only if fewer elements are transposed than before. Linear in the program for each round; rounds
    end when the number of transposed elements no longer falls, mostly after the first.

    Raises:
        UsageError: A layout that is neither, or an operator that has none.

    Attributes:
        layout: "NCHW" or "NHWC".
        operators: Names of those to convert; all that have a layout if empty.

    Before:
        def @main(%x: Tensor[(1, 4, 4, 2), float32], %w: Tensor[(2, 2, 1, 1), float32]) {
          %a = Transpose(Conv(Transpose(%x, perm=[0, 3, 1, 2]), %w), perm=[0, 2, 3, 1]);
          %b = Softmax(Relu(%a), axis=-1);
          Transpose(Conv(Transpose(%b, perm=[0, 3, 1, 2]), %w), perm=[0, 2, 3, 1])
        }
    After:
        def @main(%x: Tensor[(1, 4, 4, 2), float32], %w: Tensor[(2, 2, 1, 1), float32]) {
          %b = Softmax(Relu(Conv(Transpose(%x, perm=[0, 3, 1, 2]), %w)), axis=1);
          Transpose(Conv(%b, %w), perm=[0, 2, 3, 1])
        }
    """

    layout: str = "NCHW"
    operators: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the options."""
        if self.layout not in LAYOUTS:
            raise UsageError(
                f"layout is {self.layout!r}, expected {' or '.join(LAYOUTS)}",
                help="blocked layouts are no permutations of axes, which is all that a Transpose can do",
            )
        unknown = sorted(set(self.operators) - LAYOUT_OPERATORS)
        if unknown:
            known = ", ".join(sorted(LAYOUT_OPERATORS))
            raise UsageError(f"operator {unknown[0]!r} has no layout", help=f"those that have: {known}")

    def transform_function(self, function: Function, mod: IRModule, ctx: PassContext) -> Function:
        """The function with its operators in the layout."""
        chosen = frozenset(self.operators) or LAYOUT_OPERATORS
        given = function
        while True:
            values = TransposedValues(chosen, is_last=self.layout == "NHWC")
            after = values.function(function)
            if function is given:
                _diagnose(values, ctx)
            if after is function:
                return function
            if not values.has_converted and _transposed_elements(after) >= _transposed_elements(function):
                if function is given:
                    text = "stays as it is: no operator to convert, and as many elements would be transposed"
                    ctx.diagnose(function, DiagnosticLevel.MISSED, text)
                return function
            function = after


def _diagnose(values: TransposedValues, ctx: PassContext) -> None:
    """Say which operators stay as they are; of the first round, whose operators are those of the program."""
    for call, text in values.declined.items():
        ctx.diagnose(call, DiagnosticLevel.MISSED, text)


def _transposed_elements(function: Function) -> int:
    """How many elements all transposes move; unknown dimensions count as 1."""
    sealed = {node for node in post_order(function) if node is not function and is_sealed(node)}
    return sum(
        _elements(node)
        for node in post_order(function, stop=sealed)
        if isinstance(node, Call) and isinstance(node.op, Op) and is_transpose(node)
    )


def is_transpose(call: Call) -> bool:
    """Whether a call only permutes axes."""
    assert isinstance(call.op, Op)
    return (call.op.domain, call.op.name) in (("", "Transpose"), ("intarsia", "layout_transform"))


def _elements(call: Call) -> int:
    own_type, count = call.checked_type, 1
    if isinstance(own_type, TensorType):
        for dim in own_type.shape or ():
            count *= dim if isinstance(dim, int) else 1
    return count
