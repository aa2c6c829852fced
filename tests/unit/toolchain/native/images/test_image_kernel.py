"""Kernels for images of any size: artifacts, sizes, memory, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.onnx_models import model_of
from tests.pages_taken_ahead import pages_of_test, takes_pages

from intarsia import build, from_onnx, load
from intarsia.ir import DimRange, IRModule, with_dim_ranges
from intarsia.passes import partition_whole
from intarsia.runtime.executable import Executable
from intarsia.support.errors import ArtifactError, CompileError, ExecutionError
from intarsia.target import Target
from intarsia.toolchain.native.images.image_kernel import ImageKernel
from intarsia.toolchain.native.images.image_region import read_image_blob

NETWORK = (
    "g (float[n, 2, h, w] x) => (float[n, 3, p, q] y, float[n, 3] z) "
    "<float[3, 2, 2, 2] k = {1,2,3,4,5,6,7,8,-1,-2,-3,-4,-5,-6,-7,-8,1,0,1,0,1,0,1,0}> "
    "{ c = Conv <strides = [2, 2], pads = [1, 1, 0, 0]> (x, k) y = Relu (c) "
    "g = GlobalAveragePool (y) z = Flatten (g) }"
)


TARGET = Target("cpu -toolchain=native -threads=1")


def native(text: str = NETWORK) -> Executable:
    return build(partition_whole(program(text), TARGET))


def program(text: str = NETWORK) -> IRModule:
    return from_onnx(model_of(text))


def image(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


@takes_pages
@pytest.mark.parametrize("most", [600, 615])
def test_memory_for_the_largest_images_is_there_before_the_first_call(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = pages_of_test(monkeypatch)
    ranges = {"n": DimRange(1, 1), "h": DimRange(8, most), "w": DimRange(8, most)}
    text = NETWORK.replace("pads = [1, 1, 0, 0]", "pads = [0, 0, 0, 0]")
    with build(partition_whole(with_dim_ranges(program(text), ranges), TARGET)) as executable:
        kernel = kernel_of(executable)
        thread.wait()
        ready = [block.ready for block in kernel._results._memories[0]._free]
        assert min(ready) >= 3 * (most // 2) ** 2 * 4
        for size in (17, most, 64):
            x = image(1, 2, size, size)
            for result, right in zip(executable.run_flat(x=x), native(text).run_flat(x=x), strict=True):
                assert np.array_equal(result, right)  # type: ignore[arg-type]
        thread.wait()
        assert [block.ready for block in kernel._results._memories[0]._free] == ready


@pytest.fixture(scope="module")
def network() -> Executable:
    return native()


def kernel_of(executable: Executable) -> ImageKernel:
    (kernel,) = executable.kernels
    assert isinstance(kernel, ImageKernel)
    return kernel


@pytest.mark.parametrize("shape", [(1, 2, 8, 8), (2, 2, 1, 1), (1, 2, 17, 3), (3, 2, 5, 37)])
def test_sizes_are_right(network: Executable, shape: tuple[int, ...]) -> None:
    x = image(*shape)
    for result, right in zip(network.run_flat(x=x), build(program()).run_flat(x=x), strict=True):
        assert isinstance(result, np.ndarray)
        assert isinstance(right, np.ndarray)
        np.testing.assert_allclose(result, right, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "channels", "taps"), [("winograd_4", 16, 3), ("winograd_2", 20, 3), ("auto", 384, 1)]
)
def test_grids_of_tiles_and_kept_weights_are_right(
    tmp_path: Path, option: str, channels: int, taps: int
) -> None:
    """Transforms work on 4 to 24 tiles; weights of 576 KiB stay in a cache while rows pass."""
    weights = np.random.default_rng(0).standard_normal((channels, channels, taps, taps)).astype(np.float32)
    k = onnx.numpy_helper.from_array(weights / 32, "k")
    pads = (taps // 2,) * 4
    conv = onnx.helper.make_node("Conv", ["x", "k"], ["c"], pads=pads)
    gate = onnx.helper.make_node("Sigmoid", ["c"], ["s"])
    swish = onnx.helper.make_node("Mul", ["c", "s"], ["m"])  # reads the sums twice
    add = onnx.helper.make_node("Add", ["m", "x"], ["y"])
    types = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", channels, "h", "w"])
        for name in ("x", "y")
    ]
    module = from_onnx(
        onnx.helper.make_model(
            onnx.helper.make_graph([conv, gate, swish, add], "g", types[:1], types[1:], [k]),
            opset_imports=[onnx.helper.make_opsetid("", 17)],
            ir_version=9,
        )
    )
    target = Target(f"cpu -toolchain=native -threads=2 -convolutions={option}")
    build(partition_whole(module, target)).save(tmp_path / "network")
    executable, reference = load(tmp_path / "network"), build(module)
    sizes = ((1, 8, 8), (2, 11, 21), (1, 17, 9), (1, 7, 30), (1, 1, 13), (1, 4, 4), (2, 29, 31), (1, 8, 8))
    for count, *size in sizes:
        kernel_of(executable)._arena.array[:] = 0xFF  # every number is NaN
        x = image(count, channels, *size)
        (result,), (right,) = executable.run_flat(x=x), reference.run_flat(x=x)
        assert isinstance(result, np.ndarray)
        assert isinstance(right, np.ndarray)
        np.testing.assert_allclose(result, right, rtol=1e-4, atol=1e-4)


def test_joined_images_are_moved_with_all_their_blocks() -> None:
    text = (
        "g (float[n, 2, h, w] x) => (float[n, 5, p, q] y, float[n, 5, 1, 1] z) "
        "<float[3, 2, 1, 1] k = {1, 2, 3, 4, 5, 6}, float[4] s = {1, 1, 2, 2}> "
        "{ c = Conv (x, k) r = Relu (x) j = Concat <axis = 1> (c, r) z = GlobalMaxPool (j) "
        'y = Resize <mode = "linear"> (j, , s) }'
    )
    x = image(1, 2, 9, 5)
    with native(text) as executable:
        kernel_of(executable)._arena.array[:] = 0xFF
        pairs = zip(executable.run_flat(x=x), build(program(text)).run_flat(x=x), strict=True)
        for result, right in pairs:
            assert isinstance(result, np.ndarray)
            assert isinstance(right, np.ndarray)
            np.testing.assert_allclose(result, right, rtol=1e-5, atol=1e-5)


def test_an_artifact_runs_from_its_compiled_form(network: Executable, tmp_path: Path) -> None:
    network.save(tmp_path / "i.intarsia")
    x = image(2, 2, 9, 11)
    with load(tmp_path / "i.intarsia") as loaded:
        kernel_of(loaded)
        for result, right in zip(loaded.run_flat(x=x), network.run_flat(x=x), strict=True):
            assert isinstance(result, np.ndarray)
            assert isinstance(right, np.ndarray)
            assert np.array_equal(result, right)


def test_kernels_are_timed_by_size(network: Executable) -> None:
    kernel = kernel_of(network)
    profiler = kernel.start_profiler()
    for shape in ((1, 2, 9, 11), (2, 2, 3, 4)):
        x = image(*shape)
        for result, right in zip(profiler.run([x], [None, None]), network.run_flat(x=x), strict=True):
            assert isinstance(result, np.ndarray)
            assert isinstance(right, np.ndarray)
            assert np.array_equal(result, right)
    runs = profiler.stop()
    assert [len(run) for run in runs.runs] == [len(runs.kernels) // 2] * 2


def test_many_sizes_keep_few_tables_and_one_arena(network: Executable) -> None:
    kernel = kernel_of(network)
    network.run_flat(x=image(1, 2, 90, 90))
    arena = kernel._arena.array
    for size in range(1, 81):
        network.run_flat(x=image(1, 2, size, 81 - size))
    assert len(kernel._kernels) == 64
    assert kernel._arena.array is arena


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"images":3', b'"images":2'),
        (b'"entries":[[[1,[[1,1]]],2]', b'"entries":[[[1,[[9,1]]],2]'),
        (b'"places":[[0', b'"places":[[9'),
    ],
)
def test_damaged_bytes_are_refused(network: Executable, old: bytes, new: bytes) -> None:
    kernel = kernel_of(network)
    blob = kernel.blob()
    assert blob is not None
    assert old in blob
    with pytest.raises(ArtifactError):
        read_image_blob(memoryview(blob.replace(old, new, 1)), kernel.source.weights)


def test_programs_on_elements_only_are_compiled() -> None:
    text = (
        "g (float[n, 18, h, w] x, float[n, 18, h, w] z) => (float[n, 18, h, w] y) "
        "{ r = Relu (x) s = Add (r, z) y = Tanh (s) }"
    )
    with native(text) as executable:
        kernel_of(executable)
        for shape in ((2, 18, 3, 11), (1, 18, 1, 1)):
            x, z = image(*shape), image(*shape) * 2
            (result,) = executable.run_flat(x=x, z=z)
            assert isinstance(result, np.ndarray)
            np.testing.assert_allclose(result, np.tanh(np.maximum(x, 0) + z), rtol=1e-5, atol=1e-5)


def test_transposed_convolutions_overlap() -> None:
    text = (
        "g (float[n, 1, h, w] x) => (float[n, 1, p, q] y) <float[1, 1, 4, 4] k = {"
        + ", ".join(map(str, range(16)))
        + "}> { y = ConvTranspose <strides = [2, 2], pads = [1, 1, 1, 1]> (x, k) }"
    )
    reference = build(program(text))
    with native(text) as executable:
        for shape in ((2, 1, 3, 11), (1, 1, 1, 1)):
            (result,), (right,) = (item.run_flat(x=image(*shape)) for item in (executable, reference))
            assert isinstance(result, np.ndarray)
            assert isinstance(right, np.ndarray)
            np.testing.assert_allclose(result, right, rtol=1e-5, atol=1e-5)


def test_images_that_are_too_small_are_refused() -> None:
    text = NETWORK.replace("pads = [1, 1, 0, 0]", "pads = [0, 0, 0, 0]")
    with native(text) as executable, pytest.raises(ExecutionError, match="too small"):
        executable.run_flat(x=image(1, 2, 1, 5))


@pytest.mark.parametrize(
    ("layer", "reason"),
    [
        ("Softmax <axis = 3> (x)", "Softmax"),
        ("ConvTranspose <strides = [2, 2], pads = [1, 1, 0, 0]> (x, k)", "no multiple of the stride"),
    ],
)
def test_other_layers_are_refused(layer: str, reason: str) -> None:
    text = (
        "g (float[n, 2, h, w] x) => (float[n, c, p, q] y, float[n, 2, r, s] z) "
        "<float[2, 2, 1, 1] k = {1, 2, 3, 4}> { y = " + layer + " z = Conv (x, k) }"
    )
    with pytest.raises(CompileError, match=reason):
        native(text)
