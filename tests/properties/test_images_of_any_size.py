"""Random networks on images of any size: one native program computes what the reference computes."""

from __future__ import annotations

from typing import Final

import numpy as np
import onnx
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.properties.random_images import networks

from intarsia import build, from_onnx
from intarsia.measure.inputs import random_inputs
from intarsia.passes import bind_sizes, partition_whole
from intarsia.support.errors import CompileError, ExecutionError, InvalidModelError
from intarsia.target import Target
from intarsia.toolchain.native.images.image_kernel import ImageKernel

SIZES: Final = ((1, 16, 16), (2, 17, 23), (1, 1, 1), (1, 31, 8), (3, 4, 7), (1, 16, 16))
"""Images, height and width: around a tile of 8 columns, primes, one pixel, and the first size again."""
ALGORITHMS: Final = ("auto", "winograd_2", "winograd_4")
"""Algorithms of convolutions of 3 x 3: transforms pay for more channels than the networks have."""


@pytest.mark.slow
@settings(max_examples=examples(1000, 4))
@given(networks(), st.sampled_from([1, 2]), st.sampled_from(ALGORITHMS))
def test_networks_give_what_the_reference_gives(model: onnx.ModelProto, threads: int, algorithm: str) -> None:
    check_network(model, threads, algorithm)


def check_network(model: onnx.ModelProto, threads: int, algorithm: str) -> bool:
    """Compare a network with the reference at some sizes; return whether native runs it."""
    module = from_onnx(model)
    target = Target(f"cpu -toolchain=native -threads={threads} -convolutions={algorithm}")
    try:
        executable = build(partition_whole(module, target))
    except CompileError as error:
        event(f"refused: {error.problem[:90]}")
        return False
    with executable:
        (kernel,) = executable.kernels
        assert isinstance(kernel, ImageKernel)
        event("any size")
        for images, height, width in SIZES:
            try:
                bound = bind_sizes(module, {"n": images, "h": height, "w": width})
                right = build(bound).run_flat(**(given_inputs := random_inputs(bound["main"], 0)))
            except (CompileError, ExecutionError, InvalidModelError):
                event("too small, or not for the reference")
                continue
            kernel._arena.array[:] = 0xFF  # every number is NaN
            try:
                results = executable.run_flat(**given_inputs)
            except ExecutionError:
                assert any(isinstance(item, np.ndarray) and item.size == 0 for item in right), (height, width)
                continue
            for result, expected in zip(results, right, strict=True):
                assert isinstance(result, np.ndarray)
                assert isinstance(expected, np.ndarray)
                assert result.shape == expected.shape
                np.testing.assert_allclose(
                    result, expected, rtol=1e-3, atol=1e-4 * (1 + np.abs(expected).max())
                )
    return True
