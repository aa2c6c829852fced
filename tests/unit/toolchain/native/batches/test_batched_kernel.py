"""Native kernels for batches of any size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.onnx_models import model_of

from intarsia import build, from_onnx, load
from intarsia.ir import DimRange, IRModule, with_dim_ranges
from intarsia.passes import partition_whole
from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import Array, KernelSource
from intarsia.support.errors import ArtifactError, CompileError, ExecutionError, UsageError
from intarsia.target import Target
from intarsia.toolchain.native.batches.batch_source import batch_source, sizes_up_to
from intarsia.toolchain.native.batches.batched_blob import is_batched_blob, read_batched_blob
from intarsia.toolchain.native.batches.batched_kernel import BatchedKernel, split_batch
from intarsia.toolchain.native.batches.item_kernel import ItemKernel

WEIGHTS = ", ".join(map(str, range(1, 25)))
PERCEPTRON = (
    "g (float[n, 4] x, float[6] b) => (float[n, 6] y, float[n, 2, 3] z) "
    f"<float[4, 6] w = {{{WEIGHTS}}}, int64[3] s = {{-1, 2, 3}}> "
    "{ p = MatMul (x, w) y = Add (p, b) r = Relu (p) z = Reshape (r, s) }"
)


CONVOLUTION = (
    "g (float[n, 1, 3, 3] x) => (float[n, 1, 3, 3] y) <float[1, 1, 1, 1] w = {2}> { y = Conv (x, w) }"
)


def program(text: str = PERCEPTRON) -> IRModule:
    return from_onnx(model_of(text))


def native(mod: IRModule, options: str = " -batches=1+4+16") -> Executable:
    return build(partition_whole(mod, Target(f"cpu -toolchain=native -threads=1{options}")))


def inputs(items: int) -> dict[str, Array]:
    generator = np.random.default_rng(items)
    return {
        "x": generator.standard_normal((items, 4)).astype(np.float32),
        "b": generator.standard_normal(6).astype(np.float32),
    }


def run(executable: Executable, given_inputs: dict[str, Array]) -> list[Array]:
    results = executable.run_flat(**given_inputs)
    return [item for item in results if isinstance(item, np.ndarray)]


def kernel_of(executable: Executable) -> BatchedKernel:
    (kernel,) = executable.kernels
    assert isinstance(kernel, BatchedKernel)
    return kernel


@pytest.fixture(scope="module")
def perceptron() -> Executable:
    return native(program())


@pytest.mark.parametrize("items", [1, 2, 3, 4, 5, 7, 16, 21, 40, 85, 200])
def test_batches_of_any_size_are_right(perceptron: Executable, items: int) -> None:
    given_inputs = inputs(items)
    expected = run(build(program()), given_inputs)
    for result, right in zip(run(perceptron, given_inputs), expected, strict=True):
        assert np.shape(result) == np.shape(right)
        np.testing.assert_allclose(result, right, rtol=1e-5, atol=1e-5)


def test_sizes_alternate(perceptron: Executable) -> None:
    kept = [(items, run(perceptron, inputs(items))) for items in (21, 1, 4, 21, 100, 1)]
    for items, results in kept:
        for result, right in zip(results, run(build(program()), inputs(items)), strict=True):
            np.testing.assert_allclose(result, right, rtol=1e-5, atol=1e-5)


def test_results_into_given_memory(perceptron: Executable) -> None:
    given_inputs = inputs(23)
    buffers = [np.full((23, 6), np.nan, np.float32), np.full((23, 2, 3), np.nan, np.float32)]
    perceptron.run_into(dict(given_inputs), buffers)
    for buffer, right in zip(buffers, run(build(program()), given_inputs), strict=True):
        np.testing.assert_allclose(buffer, right, rtol=1e-5, atol=1e-5)


def test_no_items_have_empty_results(perceptron: Executable) -> None:
    assert [np.shape(item) for item in run(perceptron, inputs(0))] == [(0, 6), (0, 2, 3)]


def test_an_artifact_runs_from_its_compiled_form(perceptron: Executable, tmp_path: Path) -> None:
    perceptron.save(tmp_path / "p.intarsia")
    with load(tmp_path / "p.intarsia") as loaded:
        assert list(kernel_of(loaded).regions) == [1, 4, 16]
        given_inputs = inputs(27)
        for result, right in zip(run(loaded, given_inputs), run(perceptron, given_inputs), strict=True):
            assert np.array_equal(result, right)


def test_sizes_follow_the_range_and_the_option() -> None:
    ranged = with_dim_ranges(program(CONVOLUTION), {"n": DimRange(1, 5)})
    assert list(kernel_of(native(ranged, "")).regions) == [1, 4, 5]
    assert list(kernel_of(native(ranged, " -batches=8+2")).regions) == [1, 2, 8]
    assert [sizes_up_to(high) for high in (0, 1, 3, 4, 8, 16, 32, 33)] == [
        (1,),
        (1,),
        (1, 3),
        (1, 4),
        (1, 4, 8),
        (1, 4, 16),
        (1, 4, 16, 32),
        (1, 4, 16),
    ]


def test_kernels_share_the_memory_of_weights(perceptron: Executable) -> None:
    regions = kernel_of(perceptron).regions
    packed = [
        (constant.weight, constant.packing, constant.array)
        for region in regions.values()
        for constant in region.constants
        if constant.weight is not None
    ]
    for weight, packing, array in packed:
        same = [other for name, form, other in packed if (name, form) == (weight, packing)]
        assert all(other is array for other in same)


@given(st.integers(0, 500), st.sets(st.integers(2, 64)))
def test_parts_are_the_batch(items: int, others: set[int]) -> None:
    sizes = sorted({1, *others}, reverse=True)
    parts = list(split_batch(items, sizes))
    assert sum(size * count for size, count in parts) == items
    assert [size for size, _ in parts] == sorted({size for size, _ in parts}, reverse=True)


def test_a_batch_without_a_name_runs_as_one_with_a_name() -> None:
    rng = np.random.default_rng(0)
    exe = native(program("g (float[?, 3] x) => (float[?, 3] y) { s = Softmax (x) y = Exp (s) }"))
    for items in (0, 1, 5):
        x = rng.standard_normal((items, 3)).astype(np.float32)
        powers = np.exp(x - x.max(-1, keepdims=True))
        np.testing.assert_allclose(exe(x), np.exp(powers / powers.sum(-1, keepdims=True)), rtol=1e-5)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "g (float[n, 3, m] x) => (float[n, 3, m] y) { y = Relu (x) }",
            "axis 2 of parameter 'x' may have any size, and is not the first",
        ),
        (
            "g (float[n] x, float[m] z) => (float[n] y, float[m] u) { y = Relu (x) u = Relu (z) }",
            "the first axes of 'x' and 'z' may have any size, each its own",
        ),
        (
            "g (float[?] x, float[?] z) => (float[?] y, float[?] u) { y = Relu (x) u = Relu (z) }",
            "the first axes of several parameters, 'x' among them, have no name",
        ),
        (
            "g (float[n, ?] x) => (float[n, ?] y) { y = Relu (x) }",
            "axis 1 of parameter 'x' may have any size",
        ),
        (
            "g (float[n, 3] x) => (float[n, 3] y) { y = Softmax <axis = 0> (x) }",
            "it runs batches of any size item by item, but operator 'Softmax' at node 'y' mixes items",
        ),
    ],
)
def test_other_dynamic_programs_are_refused(text: str, reason: str) -> None:
    with pytest.raises(CompileError, match=reason) as caught:
        native(program(text))
    assert caught.value.__cause__ is not caught.value


def test_products_of_any_batch_read_the_size_without_an_option() -> None:
    with native(program(), "") as executable:
        (kernel,) = executable.kernels
        assert isinstance(kernel, ItemKernel)
        first, second = kernel.clones(2)
        for size in (7, 1, 40):
            given_inputs = inputs(size)
            right = run(executable, given_inputs)
            for clone in (first, second):
                for result, expected in zip(
                    clone.run(list(given_inputs.values()), [None, None]), right, strict=True
                ):
                    assert isinstance(result, np.ndarray)
                    assert np.array_equal(result, expected)


def test_static_sources_have_no_batch() -> None:
    with native(program("g (float[2, 3] x) => (float[2, 3] y) { y = Relu (x) }")) as executable:
        assert batch_source(executable.kernels[0].source) is None


def test_different_numbers_of_items_are_refused() -> None:
    both = "g (float[n, 3] x, float[n, 3] z) => (float[n, 3] y) { y = Add (x, z) }"
    with native(program(both)) as executable:
        kernel = kernel_of(executable)
        x, z = np.ones((2, 3), np.float32), np.ones((3, 3), np.float32)
        with pytest.raises(ExecutionError, match=r"batches of \[2, 3\] items"):
            kernel.run([x, z], [None])
        with pytest.raises(ExecutionError, match="'x'"):
            kernel.run([np.ones((30, 2), np.float32), np.ones((30, 3), np.float32)], [None])


def test_a_closed_kernel_runs_no_more() -> None:
    executable = native(program())
    kernel = kernel_of(executable)
    executable.close()
    with pytest.raises(UsageError, match="closed"):
        kernel.run(list(inputs(1).values()), [None, None])


def test_a_profile_has_the_kernels_of_all_sizes_that_ran(perceptron: Executable) -> None:
    given_inputs = inputs(6)
    profile = perceptron.profile(*given_inputs.values(), repeats=5)
    names = [row.kernel.name.rpartition(" of ")[2] for row in profile.rows]
    assert set(names) == {"1", "4"}
    assert all(row.seconds > 0 for row in profile.rows)
    calls = {name: row.calls for name, row in zip(names, profile.rows, strict=True)}
    assert calls == {"1": 2, "4": 1}
    profiler = kernel_of(perceptron).start_profiler()
    results = profiler.run(list(given_inputs.values()), [None, None])
    for result, right in zip(results, run(perceptron, given_inputs), strict=True):
        assert isinstance(result, np.ndarray)
        assert np.array_equal(result, right)
    profiler.forget_runs()
    assert profiler.stop().runs == ()


class TestDamagedBlobs:
    @pytest.fixture(scope="class")
    def blob(self, perceptron: Executable) -> bytes:
        blob = kernel_of(perceptron).blob()
        assert blob is not None
        return blob

    @pytest.fixture(scope="class")
    def source(self, perceptron: Executable) -> KernelSource:
        return kernel_of(perceptron).source

    def test_it_is_known_by_its_beginning(self, blob: bytes) -> None:
        assert is_batched_blob(memoryview(blob))
        assert not is_batched_blob(memoryview(b"{}\n"))

    @pytest.mark.parametrize("length", [0, 10, 64, 1000, -100])
    def test_one_that_ends_too_early(self, blob: bytes, source: KernelSource, length: int) -> None:
        with pytest.raises(ArtifactError, match="damaged"):
            read_batched_blob(memoryview(blob[:length]), source.weights)

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            (b'"batches":[[1,', b'"batches":[[2,'),
            (b'"batches":[[1,', b'"batches":[[-,'),
            (b"true,false", b"false,true"),
            (b"true,false", b"true,3    "),
            (b",[4,", b",[5,"),
        ],
    )
    def test_one_that_does_not_fit(self, blob: bytes, source: KernelSource, old: bytes, new: bytes) -> None:
        assert old in blob[:200]
        with pytest.raises(ArtifactError):
            read_batched_blob(memoryview(blob.replace(old, new, 1)), source.weights)

    def test_what_is_damaged_is_compiled_again(self, blob: bytes, source: KernelSource) -> None:
        from intarsia.toolchain.native.toolchain import Native

        kernel = Native().load(source, blob[:1000])
        assert isinstance(kernel, BatchedKernel)
        kernel.close()
