"""What tests of passes on loop functions share: comparing a function before and after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from intarsia.ir import GlobalVar, IRModule, PrimFunc
from intarsia.ir.parser import parse_module
from intarsia.ir.verify import verify
from intarsia.native.tir import interpret
from intarsia.transform import Pass

Array = npt.NDArray[Any]


def in_module(function: PrimFunc) -> IRModule:
    return IRModule({GlobalVar("f"): function})


def parsed(text: str) -> PrimFunc:
    """The function @f of a program text, verified."""
    mod = parse_module(text)
    verify(mod)
    return mod.prim_func("f")


def lines_of(function: PrimFunc) -> list[str]:
    """The lines of the function's body, as they print."""
    return [line[2:] for line in str(in_module(function)).strip().splitlines()[2:-1]]


def random_arrays(function: PrimFunc, seed: int = 0) -> list[Array]:
    """Whole numbers below 7 for each parameter."""
    random = np.random.default_rng(seed)
    return [random.integers(0, 7, param.shape).astype(param.dtype.numpy) for param in function.params]


def results(function: PrimFunc, arrays: Sequence[Array]) -> list[Array]:
    """The arrays after the function; those given stay."""
    copies = [array.copy() for array in arrays]
    interpret(function, copies)
    return copies


def assert_same_bits(found: Sequence[Array], expected: Sequence[Array]) -> None:
    """Fail unless all elements are equal; all NaN are, and 0.0 is not -0.0."""
    for one, other in zip(found, expected, strict=True):
        if one.dtype.kind in "biu":
            np.testing.assert_array_equal(one, other)
            continue
        left, right = one.astype(np.float64), other.astype(np.float64)
        np.testing.assert_array_equal(left, right)
        numbers = ~np.isnan(left)
        np.testing.assert_array_equal(np.signbit(left)[numbers], np.signbit(right)[numbers])


def checked(made: Pass, before: PrimFunc, seed: int = 0, *, is_idempotent: bool = True) -> PrimFunc:
    """Run a pass; fail unless the result is valid, computes the same, and stays as it is when run again."""
    verify(in_module(before))
    mod = made(in_module(before))
    verify(mod)
    after = mod.prim_func("f")
    arrays = random_arrays(before, seed)
    assert_same_bits(results(after, arrays), results(before, arrays))
    if is_idempotent:
        assert made(mod) is mod, f"changes again:\n{mod}\n{made(mod)}"
    return after
