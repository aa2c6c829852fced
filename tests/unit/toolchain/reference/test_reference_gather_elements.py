"""GatherElements in the reference toolchain: indices may cover a part of the data (ONNX says so since 11)."""

from __future__ import annotations

import numpy as np
import pytest
from tests.onnx_models import model_of

from intarsia.frontend.onnx import from_onnx
from intarsia.runtime.kernel import Array
from intarsia.support.errors import ExecutionError
from intarsia.target import Target
from intarsia.toolchain import toolchain


def run(name: str, data: Array, indices: Array, axis: int) -> Array:
    sizes = [",".join(map(str, array.shape)) for array in (data, indices)]
    node = f"y = GatherElements <axis = {axis}> (data, indices)"
    text = f"g (float[{sizes[0]}] data, int64[{sizes[1]}] indices) => (float[{sizes[1]}] y) {{ {node} }}"
    module = from_onnx(model_of(text))
    kernel = toolchain(name).compile(module["main"], Target(f"cpu -toolchain={name}"), module)
    (y,) = kernel.run([data, indices], [None])
    assert isinstance(y, np.ndarray)
    return y


@pytest.mark.parametrize(
    ("shape", "wanted", "axis"), [((1, 512), (1, 16), 1), ((4, 5, 3), (2, 7, 3), 1), ((4, 3), (6, 2), -2)]
)
def test_indices_that_cover_a_part_pick_as_onnxruntime_does(
    shape: tuple[int, ...], wanted: tuple[int, ...], axis: int
) -> None:
    values = np.random.default_rng(0)
    data = values.normal(size=shape).astype(np.float32)
    indices = values.integers(-shape[axis], shape[axis], wanted)
    np.testing.assert_array_equal(
        run("reference", data, indices, axis), run("onnxruntime", data, indices, axis)
    )


def test_an_index_out_of_range_is_an_error() -> None:
    with pytest.raises(ExecutionError, match="out of bounds"):
        run("reference", np.zeros((2, 3), np.float32), np.array([[3]]), 1)
