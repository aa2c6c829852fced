"""Native kernels that read the size of the batch."""

from __future__ import annotations

import gc
import resource
from pathlib import Path

import numpy as np
import pytest
from tests.onnx_models import model_of
from tests.pages_taken_ahead import pages_of_test, takes_pages

from intarsia import build, from_onnx, load
from intarsia.ir import DimRange, IRModule, with_dim_ranges
from intarsia.passes import partition_whole
from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import Array, KernelSource
from intarsia.support.errors import ArtifactError, CompileError, ExecutionError, UsageError
from intarsia.support.pages_ahead import PAGES_AHEAD
from intarsia.target import Target
from intarsia.toolchain.native.batches.item_kernel import ItemKernel
from intarsia.toolchain.native.batches.item_region import is_item_blob, read_item_blob

BORDERS = (1, 2, 3, 7, 8, 9, 13, 15, 16, 17, 23, 31, 32, 33, 64)
"""Sizes at both borders of tiles of rows, and primes."""

WEIGHTS = ", ".join(str(number % 7 - 3) for number in range(24))
PERCEPTRON = (
    "g (float[n, 4] x, float[6] b) => (float[n, 6] y, float[n, 2, 3] z) "
    f"<float[4, 6] w = {{{WEIGHTS}}}, int64[3] s = {{-1, 2, 3}}> "
    "{ p = MatMul (x, w) y = Add (p, b) r = Relu (p) z = Reshape (r, s) }"
)
FILTERS = ", ".join(str(number % 5 - 2) for number in range(8 * 3 * 9))
IMAGES = (
    "g (float[n, 3, 9, 11] x) => (float[n, 5] y, float[n, 16, 5, 6] j) "
    f"<float[8, 3, 3, 3] k = {{{FILTERS}}}, float[16, 5] w = {{{', '.join(['1, -1, 2, 0, 3'] * 16)}}}> "
    "{ a = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (x, k) b = Relu (a) "
    "c = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (b) j = Concat <axis = 1> (b, c) "
    "d = GlobalAveragePool (j) e = Flatten (d) f = MatMul (e, w) y = Softmax <axis = 1> (f) }"
)
SEQUENCES = (
    "g (float[n, 5, 4] x) => (float[n, 5, 4] y) "
    f"<float[4, 4] q = {{{', '.join(['1, -1, 2, 0'] * 4)}}}, "
    f"float[4, 4] k = {{{', '.join(['0, 1, 1, -1'] * 4)}}}> "
    "{ a = MatMul (x, q) b = MatMul (x, k) t = Transpose <perm = [0, 2, 1]> (b) s = MatMul (a, t) "
    "p = Softmax <axis = 2> (s) v = MatMul (p, x) y = Add (v, x) }"
)


def program(text: str = PERCEPTRON) -> IRModule:
    return from_onnx(model_of(text))


def native(mod: IRModule, options: str = "", threads: int = 1) -> Executable:
    target = Target(f"cpu -toolchain=native -threads={threads} -batches=any{options}")
    return build(partition_whole(mod, target))


def inputs(text: str, items: int) -> dict[str, Array]:
    generator = np.random.default_rng(items)

    def some(*shape: int) -> Array:
        return generator.integers(-3, 4, shape).astype(np.float32)

    if text is PERCEPTRON:
        return {"x": some(items, 4), "b": some(6)}
    return {"x": some(items, 3, 9, 11) if text is IMAGES else some(items, 5, 4)}


def run(executable: Executable, given_inputs: dict[str, Array]) -> list[Array]:
    results = executable.run_flat(**given_inputs)
    return [item for item in results if isinstance(item, np.ndarray)]


def kernel_of(executable: Executable) -> ItemKernel:
    (kernel,) = executable.kernels
    assert isinstance(kernel, ItemKernel)
    return kernel


@pytest.fixture(scope="module")
def perceptron() -> Executable:
    return native(program())


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("text", [PERCEPTRON, IMAGES, SEQUENCES], ids=["perceptron", "images", "sequences"])
def test_every_size_is_right_over_the_borders_of_tiles(text: str, threads: int) -> None:
    reference = build(program(text))
    with native(program(text), threads=threads) as executable:
        kernel_of(executable)
        for items in BORDERS:
            given_inputs = inputs(text, items)
            for result, right in zip(
                run(executable, given_inputs), run(reference, given_inputs), strict=True
            ):
                assert np.shape(result) == np.shape(right)
                np.testing.assert_allclose(result, right, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("text", [PERCEPTRON, IMAGES, SEQUENCES], ids=["perceptron", "images", "sequences"])
def test_nothing_of_another_size_is_left(text: str, arenas: list[Array]) -> None:
    """A, B, A with an arena of NaN before each run."""
    with native(program(text)) as executable:
        for items in (7, 16, 7, 1, 33, 7):
            for arena in arenas:
                arena.fill(0xFF)
            given_inputs = inputs(text, items)
            for result, right in zip(
                run(executable, given_inputs), run(build(program(text)), given_inputs), strict=True
            ):
                np.testing.assert_allclose(result, right, rtol=1e-4, atol=1e-5)


def test_results_into_given_memory(perceptron: Executable) -> None:
    given_inputs = inputs(PERCEPTRON, 23)
    buffers = [np.full((23, 6), np.nan, np.float32), np.full((23, 2, 3), np.nan, np.float32)]
    perceptron.run_into(dict(given_inputs), buffers)
    for buffer, right in zip(buffers, run(build(program()), given_inputs), strict=True):
        np.testing.assert_allclose(buffer, right, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("items", [1, 9])
@pytest.mark.parametrize("last", ["Identity (x)", "Neg (x)"])
def test_results_share_no_memory(items: int, last: str) -> None:
    text = (
        "g (float[n, 4] x) => (float[n, 4] y, float[n, 4] z, float[n, 2, 2] r, float[n, 4] l) "
        f"<int64[3] s = {{-1, 2, 2}}> {{ y = Relu (x) z = Identity (y) r = Reshape (y, s) l = {last} }}"
    )
    given_inputs = {"x": np.arange(items * 4, dtype=np.float32).reshape(items, 4) - 5}
    with native(program(text)) as executable:
        first, second = run(executable, given_inputs), run(executable, given_inputs)
    arrays = [*first, *second, given_inputs["x"]]
    assert len(arrays) == 9
    for number, array in enumerate(arrays):
        assert not any(np.shares_memory(array, other) for other in arrays[:number])
    for result, right in zip(second, run(build(program(text)), given_inputs), strict=True):
        np.testing.assert_array_equal(result, right)


def test_no_items_have_empty_results(perceptron: Executable) -> None:
    assert [np.shape(item) for item in run(perceptron, inputs(PERCEPTRON, 0))] == [(0, 6), (0, 2, 3)]


def test_an_artifact_runs_without_the_compiler(
    perceptron: Executable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from intarsia.toolchain.native import build as native_build

    perceptron.save(tmp_path / "p.intarsia")
    monkeypatch.setattr(native_build, "build_region", None)
    with load(tmp_path / "p.intarsia") as loaded:
        kernel_of(loaded)
        for items in (5, 27):
            given_inputs = inputs(PERCEPTRON, items)
            for result, right in zip(run(loaded, given_inputs), run(perceptron, given_inputs), strict=True):
                assert np.array_equal(result, right)


def test_few_tables_are_kept_and_the_arena_grows_once() -> None:
    with native(program(IMAGES)) as executable:
        kernel = kernel_of(executable)
        run(executable, inputs(IMAGES, 300))
        arena = kernel._arena.array
        for items in range(1, 200):
            run(executable, inputs(IMAGES, items))
        assert kernel._arena.array is arena
        assert len(kernel._kernels) <= 64


@takes_pages
def test_memory_for_the_end_of_the_range_is_there_before_the_first_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    thread = pages_of_test(monkeypatch)
    mod = with_dim_ranges(program(IMAGES), {"n": DimRange(1, 700)})
    with native(mod) as executable:
        kernel = kernel_of(executable)
        thread.wait()
        assert kernel._arena.ready >= kernel._open_region().arena_bytes((700,))
        ready = [block.ready for block in kernel._results._memories[1]._free]
        assert [size >= 700 * 16 * 5 * 6 * 4 for size in ready] == [True, True]
        arena = kernel._arena.ready
        with native(mod) as other:
            for items in (3, 700, 650):
                given_inputs = inputs(IMAGES, items)
                results = run(executable, given_inputs)
                for result, right in zip(results, run(other, given_inputs), strict=True):
                    assert np.array_equal(result, right)
        thread.wait()
        assert kernel._arena.ready == arena


@takes_pages
def test_closed_kernels_have_no_memory_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    thread = pages_of_test(monkeypatch)
    executable = native(with_dim_ranges(program(IMAGES), {"n": DimRange(1, 700)}))
    assert len(thread._memories) > 1
    executable.close()
    thread.wait()
    gc.collect()
    assert not thread._memories


@pytest.mark.slow
def test_a_thousand_sizes_leave_memory_flat() -> None:
    with native(program(IMAGES)) as executable:
        given_inputs = inputs(IMAGES, 1000)
        run(executable, given_inputs)
        for items in range(1, 100):
            run(executable, {"x": given_inputs["x"][:items]})
        PAGES_AHEAD.wait()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for items in range(1, 1001):
            run(executable, {"x": given_inputs["x"][:items]})
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8192  # KiB


def test_different_numbers_of_items_are_refused() -> None:
    both = "g (float[n, 3] x, float[n, 3] z) => (float[n, 3] y) { y = Add (x, z) }"
    with native(program(both)) as executable:
        kernel = kernel_of(executable)
        x, z = np.ones((2, 3), np.float32), np.ones((3, 3), np.float32)
        with pytest.raises(ExecutionError, match=r"batches of \[2, 3\] items"):
            kernel.run([x, z], [None])
        with pytest.raises(ExecutionError, match="'x' needs the shape"):
            kernel.run([np.ones((30, 2), np.float32), np.ones((30, 3), np.float32)], [None])


def test_programs_that_mix_items_are_refused() -> None:
    mixing = "g (float[n, 3] x) => (float[n, 3] y) { y = Softmax <axis = 0> (x) }"
    with pytest.raises(CompileError, match="mixes items"):
        native(program(mixing))


def test_kernels_that_count_are_refused() -> None:
    text = "g (float[n, 3] x) => (float[n, 3] y) { y = Gather <axis = 1> (x, i) }"
    text = text.replace("{ y", "<int64[3] i = {2, 0, 1}> { y")
    with pytest.raises(CompileError, match="neither count rows nor check indices"):
        native(
            program(
                text.replace("Gather <axis = 1> (x, i)", "GatherElements <axis = 1> (x, j)").replace(
                    "float[n, 3] x)", "float[n, 3] x, int64[n, 3] j)"
                )
            ),
            " -checked=true",
        )


def test_a_closed_kernel_runs_no_more() -> None:
    executable = native(program())
    kernel = kernel_of(executable)
    executable.close()
    with pytest.raises(UsageError, match="closed"):
        kernel.run(list(inputs(PERCEPTRON, 1).values()), [None, None])


def test_a_profile_has_the_kernels(perceptron: Executable) -> None:
    given_inputs = inputs(PERCEPTRON, 6)
    profile = perceptron.profile(*given_inputs.values(), repeats=5)
    assert profile.rows
    assert {row.kernel.name.rpartition(" of ")[2] for row in profile.rows} == {"6"}
    profiler = kernel_of(perceptron).start_profiler()
    results = profiler.run(list(given_inputs.values()), [None, None])
    for result, right in zip(results, run(perceptron, given_inputs), strict=True):
        assert isinstance(result, np.ndarray)
        assert np.array_equal(result, right)


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
        assert is_item_blob(memoryview(blob))
        assert not is_item_blob(memoryview(b"{}\n"))

    @pytest.mark.parametrize("length", [0, 10, 64, 1000, -100])
    def test_one_that_ends_too_early(self, blob: bytes, source: KernelSource, length: int) -> None:
        with pytest.raises(ArtifactError, match="damaged"):
            read_item_blob(memoryview(blob[:length]), source.weights)

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            (b'"any_batch":[[[0,[[0]]]],[]]', b'"any_batch":[[[0,[[0]]]],1 ]'),
            (b'"any_batch":[[[0,[[0]]]],[]]', b'"any_batch":[[[0,[[0]]]]   ]'),
            (b'"any_batch":[[[0,[[0]]]],[]]', b'"any_batch":[[[2,[[0]]]],[]]'),
            (b'"any_batch":[[[0,[[0]]]],[]]', b'"any_batch":[[[0,[[1]]]],[]]'),
            (b'"any_batch":[[[0,[[0]]]],[]]', b'"any_batch":[[[0,[   ]]],[]]'),
            (b'"any_batch":[[[0,[[0]]]],[]]', b'"any_batch":[[[0,[ 0 ]]],[]]'),
            (b'"any_batch":[[[0,[[0]]]],[]]', b'"any_batch":[[[0     ]],[  ]]'),
            (b'"any_batch":[[[0,[[0]]]],[]]', b'"any_batch":[[],[]          ]'),
            (b'"results":[[[0,[[0]]]],[[0,[[0]]]]]', b'"results":[[[0,[[0]]]],[[3,[[0]]]]]'),
            (b'"limits":[[0,1048576]]', b'"limits":[[0,1048577]]'),
            (b'"limits":[[0,1048576]]', b'"limits":[[9,0      ]]'),
            (b'"limits":[[0,1048576]]', b'"limits":[[0        ]]'),
            (b'"numbers":[[[0]],[]', b'"numbers":[[[0]]   '),
            (b'"numbers":[[[0]],[]', b'"numbers":[[[7]],[]'),
            (b'"long":64', b'"long":65'),
            (b'"long":64', b'"long":960'),
            (b'["constant",0]', b'["constant",6]'),
            (b'["constant",0]', b'["arena",0   ]'),
        ],
    )
    def test_one_that_does_not_fit(self, blob: bytes, source: KernelSource, old: bytes, new: bytes) -> None:
        assert old in blob[:4000]
        with pytest.raises(ArtifactError):
            read_item_blob(memoryview(blob.replace(old, new, 1)), source.weights)

    def test_what_is_damaged_is_compiled_again(self, blob: bytes, source: KernelSource) -> None:
        from intarsia.toolchain.native.toolchain import Native

        kernel = Native().load(source, blob[:1000])
        assert isinstance(kernel, ItemKernel)
        kernel.close()
