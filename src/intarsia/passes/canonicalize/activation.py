"""Written-out activation functions as the operator of that name.

Each is found in whichever order its factors are multiplied; its constants may be off by their last digits.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sqrt

from intarsia.ir import Call, Expr, with_fields
from intarsia.op import call as make_call
from intarsia.passes.canonicalize.product_factors import Product, is_near, plus_scalar, product_of
from intarsia.passes.rules.tensor_facts import dims_of, dtype_of, operator_name

_CUBIC = 0.044715


def gelu_or_hard_swish(call: Call) -> Expr | None:
    """`x * 0.5 * (1 + erf(x / sqrt(2)))` as `Gelu(x)`, and so on."""
    return _named(call, (_gelu, _hard_swish))


def swish(call: Call) -> Expr | None:
    """`x * sigmoid(x)` as `Swish(x)`."""
    return _named(call, (_swish,))


def _named(call: Call, formulas: tuple[Callable[[Expr, Expr, Product], Expr | None], ...]) -> Expr | None:
    product = product_of(call)
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


def _gelu(x: Expr, gate: Expr, product: Product) -> Expr | None:
    """`0.5 x (1 + erf(x / sqrt(2)))`, and the approximation by tanh (Hendrycks and Gimpel, 2016)."""
    match plus_scalar(gate):
        case (Call(args=(inner,)) as bent, 1.0) if product.has_scale(0.5):
            if operator_name(bent) == "Erf" and _is_scaled(inner, x, sqrt(0.5)):
                return make_call("Gelu", x)
            if operator_name(bent) == "Tanh" and _is_tanh_argument(inner, x):
                return make_call("Gelu", x, approximate="tanh")
        case _:
            pass
    return None


def _is_scaled(expr: Expr, x: Expr, factor: float) -> bool:
    product = product_of(expr)
    return product.tensors == (x,) and product.has_scale(factor)


def _is_tanh_argument(expr: Expr, x: Expr) -> bool:
    """Whether it is `sqrt(2 / pi) * (x + 0.044715 x**3)`."""
    outer = product_of(expr)
    if len(outer.tensors) != 1 or not outer.has_scale(sqrt(2 / pi)):
        return False
    total = outer.tensors[0]
    if operator_name(total) != "Add":
        return False
    assert isinstance(total, Call)
    left, right = total.args
    return (left is x and _is_cube(right, x)) or (right is x and _is_cube(left, x))


def _is_cube(expr: Expr, x: Expr) -> bool:
    product = product_of(expr)
    if not product.has_scale(_CUBIC):
        return False
    match product.tensors:
        case (Call(args=(base, exponent)) as power,) if operator_name(power) == "Pow":
            return base is x and product_of(exponent) == Product(3.0, ())
        case (a, b, c):
            return a is x and b is x and c is x
        case _:
            return False


def _swish(x: Expr, gate: Expr, product: Product) -> Expr | None:
    """`x * sigmoid(x)` (Ramachandran et al., 2017)."""
    if operator_name(gate) != "Sigmoid" or product.scale != 1:
        return None
    assert isinstance(gate, Call)
    return make_call("Swish", x) if gate.args[0] is x else None


def _hard_swish(x: Expr, gate: Expr, product: Product) -> Expr | None:
    """`x * hardsigmoid(x)` with the slope 1/6 (Howard et al., 2019)."""
    if operator_name(gate) != "HardSigmoid" or product.scale != 1:
        return None
    assert isinstance(gate, Call)
    slope, offset = (gate.attrs.get(name, default) for name, default in (("alpha", 0.2), ("beta", 0.5)))
    assert isinstance(slope, float)
    is_hard_swish = is_near(slope, 1 / 6, dtype_of(x)) and offset == 0.5
    return make_call("HardSwish", x) if is_hard_swish and gate.args[0] is x else None
