"""Inject rounding errors into programs and inputs.

Two runs of one engine, with every weight and input moved by about a rounding error, differ by as much as two
correct engines do: within a factor of 0.6 to 2.5 in 10 of 11 cases (docs/judge.md). So the noise of a program
is known where there is only one engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.ir import (
    Call,
    Constant,
    DType,
    Expr,
    Function,
    IRModule,
    Op,
    TensorType,
    post_order,
    rewrite,
    with_fields,
)
from intarsia.measure.element_kind import ElementKind, element_kind
from intarsia.measure.judge.tolerance import machine_epsilon
from intarsia.op import call
from intarsia.op.constant_argument import constant_arguments
from intarsia.op.operator_facts import OperatorTrait
from intarsia.op.operator_table import facts_of

Array = npt.NDArray[Any]

_EPSILONS: Final = 2.0
"""Size of the perturbation in machine epsilons: 2**-22 for float32, a rounding error or two."""

_FEW: Final = 16
"""Number of elements up to which a weight with few digits counts as exact."""
_SHORT_BITS: Final = 8
"""Significant bits of a number with few digits."""

FLIPPING: Final = 2.0**-12
"""Relative size of the perturbation of a program that rounds to steps of a quantised type on the way.

Engines round half-way cases up or to even, and scale sums by floats or by integers: a few of a hundred values
end on the neighbouring step, and so they do with this perturbation (127 steps times 2**-12 is 3 % of a step).
"""


_RANKED_ARGUMENT: Final = {"ArgMax": 0, "ArgMin": 0, "NonMaxSuppression": 1, "TopK": 0}
"""The argument that an operator orders by size. Where scores saturate, many are equal, and noise in weights
does not part them; engines that round otherwise, or that sort otherwise, do."""


_WIDE: Final = (DType.FLOAT32, DType.FLOAT64)
_ROUNDED: Final = (DType.FLOAT16, DType.BFLOAT16, *_WIDE)
"""Types of results that get noise."""
_SUMS: Final = frozenset({"Add", "Sub"})


def perturbed_module(module: IRModule, seed: int, size: float = 0.0) -> IRModule:
    """Return the program with every floating-point weight multiplied by 1 + uniform noise of +-2 epsilons.

    What is exact by its meaning stays: integers (masks, 0 and 1), scalars of few digits (0.5), scales that
    shapes are computed from. Values that an operator ranks get noise of their own, so that ties are broken
    otherwise than by position. So do results of functions that are flat somewhere: of the noise of its
    argument, Erf(-4) shows nothing, but engines round it otherwise, and 1 + Erf(-4) is nothing but that. So
    do sums with an exact constant: 1 + Exp(-9) shows little of Exp(-9), and whoever fuses it into a
    Softplus rounds otherwise.

    Args:
        module: The program.
        seed: Equal seeds give equal programs.
        size: Relative size of the noise, if it is to be larger.
    """
    kept = {
        call.args[number]
        for function in module.graph_functions.values()
        for call in post_order(function)
        if isinstance(call, Call) and isinstance(call.op, Op)
        if facts_of(call.op).has(OperatorTrait.FLOAT_SIZES)
        for number in constant_arguments(call)
        if number < len(call.args)
    }
    generator = np.random.default_rng(seed)

    def rule(expr: Expr) -> Expr:
        if isinstance(expr, Call) and isinstance(expr.op, Op) and not expr.op.domain:
            return _rounded_otherwise(_without_ties(expr, expr.op.name, seed), generator)
        if not isinstance(expr, Constant) or expr in kept or not _is_inexact(expr.data):
            return expr
        if _is_exact(expr):
            return expr
        return with_fields(expr, data=_perturbed(expr.data, generator, size))

    for name, function in module.graph_functions.items():
        perturbed = rewrite(function, rule)
        assert isinstance(perturbed, Function)
        module = module.with_function(name, perturbed)
    return module


def _without_ties(call_: Call, op_name: str, seed: int) -> Call:
    """Multiply the ranked argument of a call by noise; return the call itself if it ranks no floats."""
    position = _RANKED_ARGUMENT.get(op_name)
    if position is None or position >= len(call_.args):
        return call_
    ranked = call_.args[position]
    type_ = ranked.checked_type
    if not isinstance(type_, TensorType) or type_.dtype not in _WIDE:
        return call_
    reach = _EPSILONS * machine_epsilon(type_.dtype.numpy)
    noise = call("RandomUniformLike", ranked, low=1.0 - reach, high=1.0 + reach, seed=float(seed))
    args = list(call_.args)
    args[position] = call("Mul", ranked, noise)
    return with_fields(call_, args=tuple(args))


def _rounded_otherwise(call_: Call, generator: np.random.Generator) -> Call:
    """Multiply a result whose rounding its arguments may not show by noise, along the last axis."""
    type_ = call_.checked_type
    if not isinstance(call_.op, Op) or not isinstance(type_, TensorType):
        return call_
    if facts_of(call_.op).has(OperatorTrait.FLAT) and type_.dtype in _ROUNDED:
        return _times_noise(call_, type_, generator)
    if call_.op.name in _SUMS and type_.dtype in _WIDE and any(map(_is_exact, call_.args)):
        # Whole numbers stay: they are positions and counts, which a Floor or a shape may depend on.
        moved = _times_noise(call_, type_, generator)
        return call("Where", call("Equal", call("Round", call_), call_), call_, moved)
    return call_


def _times_noise(value: Call, type_: TensorType, generator: np.random.Generator) -> Call:
    last = type_.shape[-1] if type_.shape else None
    count = (last,) if isinstance(last, int) else ()
    largest = _EPSILONS if type_.dtype.numpy.itemsize >= 4 else 1.0
    # Never less than half: there are as many numbers of noise only as runs that a difference is taken from.
    size = generator.uniform(largest / 2, largest, count) if largest > 1 else np.ones(count)
    sign = generator.choice([-1.0, 1.0], count)
    noise = np.asarray(1.0 + sign * size * machine_epsilon(type_.dtype.numpy)).astype(type_.dtype.numpy)
    return call("Mul", value, Constant(noise))


def _is_exact(expr: Expr) -> bool:
    """Return whether this is a floating-point constant of few elements with few digits, which stays."""
    if not isinstance(expr, Constant) or not _is_inexact(expr.data):
        return False
    return expr.data.size <= _FEW and _is_short(expr.data)


def perturbed_inputs(inputs: Mapping[str, Array], seed: int, size: float = 0.0) -> dict[str, Array]:
    """Return inputs with the same noise; arrays of numbers with few digits are data, and stay."""
    generator = np.random.default_rng(seed)
    return {
        name: _perturbed(array, generator, size) if _is_inexact(array) and not _is_short(array) else array
        for name, array in inputs.items()
    }


def _is_inexact(array: Array) -> bool:
    return element_kind(array.dtype) in {ElementKind.FLOAT, ElementKind.COMPLEX} and array.dtype.itemsize > 1


def _perturbed(array: Array, generator: np.random.Generator, least: float) -> Array:
    if element_kind(array.dtype) is ElementKind.COMPLEX:
        parts = [_perturbed(part, generator, least) for part in (array.real, array.imag)]
        return np.asarray(parts[0] + 1j * parts[1]).astype(array.dtype)
    wide = array.dtype if array.dtype.itemsize >= 4 else np.dtype(np.float32)
    # A narrow type is moved by at most one unit in the last place: two are more than rounding does.
    size = max(least, machine_epsilon(array.dtype) * (_EPSILONS if array.dtype.itemsize >= 4 else 1.0))
    noise = generator.random(array.shape, np.float64 if wide.itemsize == 8 else np.float32)
    values = array.astype(wide)
    with np.errstate(invalid="ignore", over="ignore"):
        moved = values + values * ((noise * 2 - 1) * wide.type(size))
    # Integers are exact in every engine; so is what overflowed or is missing.
    is_exact = (values == np.rint(values)) | ~np.isfinite(moved.astype(array.dtype).astype(wide))
    return np.where(is_exact, values, moved).astype(array.dtype)


def _is_short(array: Array) -> bool:
    """Return whether all numbers have at most 8 significant bits, such as 0.5; random ones rarely do."""
    if array.size == 0:
        return True
    mantissas = np.frexp(np.asarray(array.real, np.float64))[0] * 2**_SHORT_BITS
    with np.errstate(invalid="ignore"):
        return bool((~np.isfinite(mantissas) | (mantissas == np.rint(mantissas))).all())
