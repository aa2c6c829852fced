"""Written-out activation functions as the operator of that name.

Each is found in whichever order its factors are multiplied; its constants may be off by their last digits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import pi, sqrt

from intarsia.ir import Call, Constant, DType, Expr, with_fields
from intarsia.op import call as make_call
from intarsia.passes.rules.tensor_facts import dims_of, dtype_of, operator_name

_CUBIC = 0.044715

_DEPTH = 3
"""Levels of Mul and Div that are opened, so that each call is looked at a bounded number of times."""
_DIGITS = {DType.FLOAT16: 11, DType.BFLOAT16: 8, DType.FLOAT32: 21, DType.FLOAT64: 21}
"""Bits to which a constant must agree with what the formula says; models write them with few digits."""


def gelu_or_hard_swish(call: Call) -> Expr | None:
    """`x * 0.5 * (1 + erf(x / sqrt(2)))` as `Gelu(x)`, and so on."""
    return _named(call, (_gelu, _hard_swish))


def swish(call: Call) -> Expr | None:
    """`x * sigmoid(x)` as `Swish(x)`."""
    return _named(call, (_swish,))


def _named(call: Call, formulas: tuple[Callable[[Expr, Expr, _Product], Expr | None], ...]) -> Expr | None:
    product = _product_of(call)
    if len(product.tensors) != 2:
        return None
    first, second = product.tensors
    for x, gate in ((first, second), (second, first)):
        for formula in formulas:
            built = formula(x, gate, product)
            if built is not None and _rank(x) == _rank(call):
                return with_fields(built, checked_type=call.checked_type)
    return None


def _rank(expr: Expr) -> int | None:
    """Constants of one element may still add axes to what they are multiplied with."""
    dims = dims_of(expr)
    return None if dims is None else len(dims)


def _gelu(x: Expr, gate: Expr, product: _Product) -> Expr | None:
    """`0.5 x (1 + erf(x / sqrt(2)))`, and the approximation by tanh (Hendrycks and Gimpel, 2016)."""
    match _plus_scalar(gate):
        case (Call(args=(inner,)) as bent, 1.0) if product.has_scale(0.5):
            if operator_name(bent) == "Erf" and _is_scaled(inner, x, sqrt(0.5)):
                return make_call("Gelu", x)
            if operator_name(bent) == "Tanh" and _is_tanh_argument(inner, x):
                return make_call("Gelu", x, approximate="tanh")
        case _:
            pass
    return None


def _is_scaled(expr: Expr, x: Expr, factor: float) -> bool:
    product = _product_of(expr)
    return product.tensors == (x,) and product.has_scale(factor)


def _is_tanh_argument(expr: Expr, x: Expr) -> bool:
    """Whether it is `sqrt(2 / pi) * (x + 0.044715 x**3)`."""
    outer = _product_of(expr)
    if len(outer.tensors) != 1 or not outer.has_scale(sqrt(2 / pi)):
        return False
    total = outer.tensors[0]
    if operator_name(total) != "Add":
        return False
    assert isinstance(total, Call)
    left, right = total.args
    return (left is x and _is_cube(right, x)) or (right is x and _is_cube(left, x))


def _is_cube(expr: Expr, x: Expr) -> bool:
    product = _product_of(expr)
    if not product.has_scale(_CUBIC):
        return False
    match product.tensors:
        case (Call(args=(base, exponent)) as power,) if operator_name(power) == "Pow":
            return base is x and _product_of(exponent) == _Product(3.0, ())
        case (a, b, c):
            return a is x and b is x and c is x
        case _:
            return False


def _swish(x: Expr, gate: Expr, product: _Product) -> Expr | None:
    """`x * sigmoid(x)` (Ramachandran et al., 2017)."""
    if operator_name(gate) != "Sigmoid" or product.scale != 1:
        return None
    assert isinstance(gate, Call)
    return make_call("Swish", x) if gate.args[0] is x else None


def _hard_swish(x: Expr, gate: Expr, product: _Product) -> Expr | None:
    """`x * hardsigmoid(x)` with the slope 1/6 (Howard et al., 2019)."""
    if operator_name(gate) != "HardSigmoid" or product.scale != 1:
        return None
    assert isinstance(gate, Call)
    slope, offset = (gate.attrs.get(name, default) for name, default in (("alpha", 0.2), ("beta", 0.5)))
    assert isinstance(slope, float)
    is_hard_swish = _is_near(slope, 1 / 6, dtype_of(x)) and offset == 0.5
    return make_call("HardSwish", x) if is_hard_swish and gate.args[0] is x else None


@dataclass(frozen=True, slots=True)
class _Product:
    """A scalar times some tensors.

    Attributes:
        scale: The product of all scalar constants.
        tensors: The other factors.
    """

    scale: float
    tensors: tuple[Expr, ...]

    def has_scale(self, value: float) -> bool:
        """Whether the scalar is `value`, as exactly as the elements of the tensors can say it."""
        return _is_near(self.scale, value, dtype_of(self.tensors[0]) if self.tensors else None)


def _product_of(expr: Expr, depth: int = _DEPTH) -> _Product:
    """An expression as a product; of anything else than Mul, and Div by a scalar, it is the only factor."""
    scalar = _scalar_value(expr)
    if scalar is not None:
        return _Product(scalar, ())
    name = operator_name(expr)
    if depth and name in ("Mul", "Div"):
        assert isinstance(expr, Call)
        left, right = (_product_of(arg, depth - 1) for arg in expr.args)
        if name == "Mul":
            return _Product(left.scale * right.scale, (*left.tensors, *right.tensors))
        if not right.tensors and right.scale:
            return _Product(left.scale / right.scale, left.tensors)
    return _Product(1.0, (expr,))


def _scalar_value(expr: Expr) -> float | None:
    """The value of a constant of one float."""
    match expr:
        case Constant(data=data) if data.size == 1 and DType.of(data) in _DIGITS:
            return float(data.item())
        case _:
            return None


def _plus_scalar(expr: Expr) -> tuple[Expr, float] | None:
    """`x` and `c` of `x + c` or `c + x`."""
    if operator_name(expr) != "Add":
        return None
    assert isinstance(expr, Call)
    left, right = expr.args
    for x, other in ((left, right), (right, left)):
        value = _scalar_value(other)
        if value is not None:
            return x, value
    return None


def _is_near(actual: float, expected: float, dtype: DType | None) -> bool:
    """Whether a constant of a model is the number of the formula, up to its last digits."""
    digits = None if dtype is None else _DIGITS.get(dtype)
    return digits is not None and abs(actual - expected) <= abs(expected) * 2.0 ** (1 - digits)
