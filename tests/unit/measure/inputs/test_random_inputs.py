"""Seeded random inputs."""

from __future__ import annotations

import numpy as np
import pytest

from intarsia.ir import Attrs, Function, SymbolicDim, TensorType, Tuple, Type, Var
from intarsia.measure.inputs import random_inputs
from intarsia.support.errors import UsageError


def function(*types: Type, **attrs: object) -> Function:
    params = tuple(Var(f"p{i}", checked_type=type_) for i, type_ in enumerate(types))
    return Function(params, Tuple(params), Attrs(attrs))  # type: ignore[arg-type]  # attribute values by construction


def tensor(dtype: str, *shape: int | SymbolicDim) -> TensorType:
    return TensorType(shape, dtype)  # type: ignore[arg-type]  # any spelling is accepted


def test_equal_seeds_give_equal_arrays_and_others_do_not() -> None:
    made = function(tensor("float32", 3, 4))
    first, again, other = random_inputs(made, 1), random_inputs(made, 1), random_inputs(made, 2)
    np.testing.assert_array_equal(first["p0"], again["p0"])
    assert not np.array_equal(first["p0"], other["p0"])


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int64", "uint8", "bool", "complex64"])
def test_every_kind_of_element(dtype: str) -> None:
    array = random_inputs(function(tensor(dtype, 50)))["p0"]
    assert array.dtype.name == dtype
    assert array.shape == (50,)
    assert len(set(array.tolist())) > 1


def test_declared_ranges_are_kept() -> None:
    made = function(tensor("int64", 1000), tensor("int64", 100), input_ranges=(("p0", 5, 9), ("p1", 1, 2)))
    inputs = random_inputs(made)
    assert set(inputs["p0"].tolist()) == {5, 6, 7, 8}
    assert set(inputs["p1"].tolist()) == {1}


def test_a_symbolic_shape_asks_for_numbers() -> None:
    with pytest.raises(UsageError) as caught:
        random_inputs(function(tensor("float32", SymbolicDim("N"), 3)))
    assert str(caught.value) == (
        "input 'p0' has the symbolic shape Tensor[(N, 3), float32]\n"
        "help: fix it: --shape p0=1,3, or shapes={...} in Python"
    )


def test_strings_are_words() -> None:
    assert all(isinstance(word, str) and word for word in random_inputs(function(tensor("string", 3)))["p0"])
