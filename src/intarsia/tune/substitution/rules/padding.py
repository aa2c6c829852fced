"""Zeros around tensors, and operators that can add them themselves."""

from __future__ import annotations

from intarsia.ir import Call, Expr
from intarsia.ir.pattern import is_constant, is_op
from intarsia.op import call
from intarsia.passes.rules.tensor_facts import constant_ints, operator_name
from intarsia.passes.simplify.padding import conv_of_pad
from intarsia.tune.substitution.building import called, ints, is_absent, rank_of
from intarsia.tune.substitution.convolution import Convolution
from intarsia.tune.substitution.rule import A, substitution

_PAD = is_op("Pad")
_KEEPING_ZERO = ("Abs", "Ceil", "Erf", "Floor", "LeakyRelu", "Neg", "Relu", "Sign", "Sin", "Sqrt", "Tanh")
"""Elementwise operators that make 0 of 0."""


def _adds_zeros(pad: Call) -> bool:
    """Whether a Pad puts zeros around all axes that it names."""
    is_constant_mode = pad.attrs.get("mode", "constant") == "constant"
    return is_constant_mode and (len(pad.args) == 2 or all(is_absent(each) for each in pad.args[2:]))


@substitution(is_op("Conv")(_PAD(...), ...))
def pads_into_convolution(root: Call) -> Expr | None:
    """A convolution of a tensor with zeros around it as one that adds them.

    Before:
        def @main(%a: Tensor[(N, 1, 3, 3), float32], %b: Tensor[(1, 1, 2, 2), float32]) {
          Conv(Pad(%a, meta[Constant][0]), %b)
        }
    After:
        def @main(%a: Tensor[(N, 1, 3, 3), float32], %b: Tensor[(1, 1, 2, 2), float32]) {
          Conv(%a, %b, pads=[1, 1, 0, 0])
        }
    Constants:
        [0, 0, 1, 1, 0, 0, 0, 0]
    """
    return conv_of_pad(root)


@substitution(is_op("Conv")(A, ...))
def pads_out_of_convolution(root: Call, a: Expr) -> Expr | None:
    """A convolution that adds zeros as one of a tensor with zeros around it.

    Before:
        def @main(%a: Tensor[(N, 1, 3, 3), float32], %b: Tensor[(1, 1, 2, 2), float32]) {
          Conv(%a, %b, pads=[1, 1, 0, 0])
        }
    After:
        def @main(%a: Tensor[(N, 1, 3, 3), float32], %b: Tensor[(1, 1, 2, 2), float32]) {
          Conv(Pad(%a, meta[Constant][0]), %b, pads=[0, 0, 0, 0])
        }
    Constants:
        [0, 0, 1, 1, 0, 0, 0, 0]
    """
    convolution = Convolution.of(root)
    if convolution is None or not any(convolution.pads):
        return None
    rank = len(convolution.kernel)
    padded = call("Pad", a, ints(0, 0, *convolution.pads[:rank], 0, 0, *convolution.pads[rank:]))
    return convolution.rebuilt(padded, bias=convolution.bias, pads=(0,) * (2 * rank))


@substitution(_PAD(_PAD(A, is_constant().named("c")).named("b"), is_constant().named("d")))
def merge_pads(root: Call, a: Expr, b: Call, c: Expr, d: Expr) -> Expr | None:
    """Zeros around zeros as zeros.

    Before:
        def @main(%a: Tensor[(N, 3), float32]) { Pad(Pad(%a, meta[Constant][0]), meta[Constant][1]) }
    After:
        def @main(%a: Tensor[(N, 3), float32]) { Pad(%a, meta[Constant][2]) }
    Constants:
        [0, 1, 0, 2] [0, 2, 0, 0] [0, 3, 0, 2]
    """
    inner, outer, rank = constant_ints(c), constant_ints(d), rank_of(a)
    if inner is None or outer is None or not len(inner) == len(outer) == 2 * rank:
        return None
    if not (_adds_zeros(root) and _adds_zeros(b)) or min((*inner, *outer), default=-1) < 0:
        return None
    return call("Pad", a, ints(*(x + y for x, y in zip(inner, outer, strict=True))))


@substitution(is_op(*_KEEPING_ZERO)(_PAD(A, is_constant()).named("b")))
def elementwise_before_pad(root: Call, a: Expr, b: Call) -> Expr | None:
    """An operator that makes 0 of 0, of a tensor with zeros around it, as its result with zeros around.

    Before:
        def @main(%a: Tensor[(N, 3), float32]) { Tanh(Pad(%a, meta[Constant][0])) }
    After:
        def @main(%a: Tensor[(N, 3), float32]) { Pad(Tanh(%a), meta[Constant][0]) }
    Constants:
        [0, 1, 0, 2]
    """
    return (
        called("Pad", b.attrs, called(operator_name(root), root.attrs, a), b.args[1])
        if _adds_zeros(b)
        else None
    )


@substitution(_PAD(is_op(*_KEEPING_ZERO)(A).named("b"), is_constant()))
def elementwise_behind_pad(root: Call, a: Expr, b: Call) -> Expr | None:
    """The result of an operator that makes 0 of 0, with zeros around, as the operator of a padded tensor.

    Before:
        def @main(%a: Tensor[(N, 3), float32]) { Pad(Tanh(%a), meta[Constant][0]) }
    After:
        def @main(%a: Tensor[(N, 3), float32]) { Tanh(Pad(%a, meta[Constant][0])) }
    Constants:
        [0, 1, 0, 2]
    """
    if not _adds_zeros(root):
        return None
    return called(operator_name(b), b.attrs, called("Pad", root.attrs, a, root.args[1]))
