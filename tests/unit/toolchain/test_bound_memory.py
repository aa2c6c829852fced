"""Bindings that are kept from call to call fit what lies there now, and keep nothing alive."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any
from weakref import ref

import numpy as np
import pytest
from onnx import TensorProto, helper

from intarsia.runtime.kernel import KernelSource
from intarsia.support.errors import ExecutionError
from intarsia.toolchain import toolchain
from intarsia.toolchain.bound_memory import BoundMemory

TOOLCHAINS = ("onnxruntime", "openvino", "reference")
SourceOf = Callable[..., KernelSource]


def negation(source_of: SourceOf, name: str, *shape: int | str) -> Any:
    """A kernel for y = -x."""
    inputs, outputs = ([helper.make_tensor_value_info(n, TensorProto.FLOAT, shape)] for n in "xy")
    return toolchain(name).load(source_of(name, [helper.make_node("Neg", ["x"], ["y"])], inputs, outputs))


def numbers(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape).copy()


@pytest.mark.parametrize("name", TOOLCHAINS)
@pytest.mark.parametrize("is_view", [False, True])
def test_an_input_reshaped_in_place_is_bound_again(source_of: SourceOf, name: str, is_view: bool) -> None:
    kernel = negation(source_of, name, "n", "m")
    memory = numbers(2, 6)
    x = memory[:] if is_view else memory
    for shape in ((2, 6), (4, 3), (1, 12), (2, 6)):
        x.shape = shape
        (y,) = kernel.run([x], [None])
        assert y.tolist() == (-x).tolist()
        into = np.empty(shape, np.float32)
        kernel.run([x], [into])
        assert into.tolist() == (-x).tolist()


@pytest.mark.parametrize("name", TOOLCHAINS)
def test_an_output_reshaped_in_place_is_bound_again(source_of: SourceOf, name: str) -> None:
    kernel = negation(source_of, name, "n", "m")
    x, y = numbers(2, 6), np.empty((2, 6), np.float32)
    for shape in ((2, 6), (4, 3)):
        x.shape = y.shape = shape
        y[...] = 0
        kernel.run([x], [y])
        assert y.tolist() == (-x).tolist()


@pytest.mark.skipif(sys.gettrace() is not None, reason="a tracer, such as coverage's, holds references")
@pytest.mark.parametrize("name", TOOLCHAINS)
def test_an_input_that_moved_is_bound_again(source_of: SourceOf, name: str) -> None:
    kernel = negation(source_of, name, 1000)
    x = numbers(1000)
    kernel.run([x], [None])
    x.resize(10_000_000)  # it moves; works only because nobody holds a reference, not even a weak one
    x.resize(1000)
    x[:] = 7
    assert kernel.run([x], [None])[0].tolist() == [-7] * 1000


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_an_input_of_another_element_type_is_refused_again(source_of: SourceOf, name: str) -> None:
    kernel = negation(source_of, name, 3)
    x: Any = numbers(3)
    kernel.run([x], [None])
    x.dtype = np.int32
    with pytest.raises(ExecutionError, match="'x' needs a contiguous float32 array, found int32 array"):
        kernel.run([x], [None])
    x.dtype = np.float32
    assert kernel.run([x], [None])[0].tolist() == [0, -1, -2]


@pytest.mark.parametrize("name", TOOLCHAINS)
@pytest.mark.parametrize("shape", [(3, 1000), ("n", "m")])
def test_arrays_of_a_call_are_not_kept(source_of: SourceOf, name: str, shape: tuple[int | str, ...]) -> None:
    kernel = negation(source_of, name, *shape)
    x, into = numbers(3, 1000), np.empty((3, 1000), np.float32)
    kernel.run([x], [into])
    allocated = kernel.run([x[:]], [None])[0]
    gone = [ref(array) for array in (x, into, allocated)]
    del x, into, allocated
    assert [alive() for alive in gone] == [None] * 3
    y = numbers(3, 1000)
    assert kernel.run([y], [None])[0].tolist() == (-y).tolist()


def test_what_fits_a_binding() -> None:
    bound = BoundMemory()
    x = numbers(4, 4)
    assert not bound.is_at(x)
    bound.note(x, x.ctypes.data)
    assert bound.is_at(x)
    assert bound.is_at(x[:])
    assert not bound.is_at(x.copy())
    assert not bound.is_at(x.T)  # the same memory in another order
    assert not bound.is_at(x[:2])
    assert not bound.is_at(x.view(np.int32))
    assert not bound.is_at(None)
    assert not bound.is_at([x])
    bound.forget()
    assert not bound.is_at(x)


def test_a_view_that_comes_again_is_known_by_identity() -> None:
    bound = BoundMemory()
    view = numbers(4, 4)[:]
    bound.note(view, 12345)  # not its address: nobody asks for it
    assert bound.is_at(view)
    assert not bound.is_at(view[:])
