"""Native kernels on texts of any length: one kernel, one packed weight and one plan of the arena for all."""

from __future__ import annotations

import resource
from pathlib import Path

import numpy as np
import pytest
from tests.onnx_models import model_of
from tests.token_programs import (
    COUNTED,
    FORMS,
    HEADS,
    LENGTHS,
    NEIGHBOURS,
    OPERATORS,
    POOLED,
    PROGRAMS,
    program,
    token_inputs,
    token_model,
)

from intarsia import build, from_onnx, load
from intarsia.ir import IRModule
from intarsia.passes import partition_whole
from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import Array
from intarsia.support.errors import CompileError, ExecutionError
from intarsia.support.pages_ahead import PAGES_AHEAD
from intarsia.target import Target
from intarsia.toolchain.native.batches.item_kernel import ItemKernel


def native(mod: IRModule, threads: int = 1) -> Executable:
    return build(partition_whole(mod, Target(f"cpu -toolchain=native -threads={threads}")))


def run(executable: Executable, given_inputs: dict[str, Array]) -> list[Array]:
    return [item for item in executable.run_flat(**given_inputs) if isinstance(item, np.ndarray)]


def kernel_of(executable: Executable) -> ItemKernel:
    (kernel,) = executable.kernels
    assert isinstance(kernel, ItemKernel)
    return kernel


def require_right(
    executable: Executable, mod: IRModule, reference: Executable, length: int, texts: int = 1
) -> None:
    given_inputs = token_inputs(mod, length, texts=texts)
    for result, right in zip(run(executable, given_inputs), run(reference, given_inputs), strict=True):
        assert result.shape == right.shape
        np.testing.assert_allclose(result, right, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_length_is_right_over_the_borders_of_tiles(name: str, threads: int) -> None:
    mod = program(name)
    reference = build(mod)
    with native(mod, threads) as executable:
        kernel_of(executable)
        for length in LENGTHS:
            require_right(executable, mod, reference, length)


PAIRS = ((1, 1), (1, 7), (2, 8), (3, 17), (7, 1), (5, 13), (2, 64))
"""Numbers of texts, and of tokens of each, with primes and both borders of tiles."""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "steps",
    [list(FORMS), list(POOLED), list(NEIGHBOURS), list(COUNTED), list(OPERATORS), ["positions", "slopes"]],
    ids=str,
)
def test_several_texts_of_any_length_are_right(steps: list[str], threads: int) -> None:
    mod = from_onnx(token_model([name for step in steps for name in (step, "norm")], texts="batch"))
    reference = build(mod)
    with native(mod, threads) as executable:
        kernel_of(executable)
        for texts, length in PAIRS:
            require_right(executable, mod, reference, length, texts)


@pytest.mark.parametrize("texts", ["1", "batch"])
@pytest.mark.parametrize("head", HEADS)
def test_what_texts_become_is_right(head: str, texts: str) -> None:
    mod = from_onnx(token_model(["masked", "centered"], head=head, texts=texts))
    reference = build(mod)
    with native(mod) as executable:
        kernel_of(executable)
        for count, length in PAIRS:
            require_right(executable, mod, reference, length, 1 if texts == "1" else count)


def test_results_of_tokens_and_of_texts() -> None:
    model = model_of(
        "g (float[batch, length, 8] x) => (float h, float y, float z) "
        "{ h = Relu (x) y = ReduceMean <keepdims = 0> (h, one1) z = Sub (x, h) }",
        opset=18,
        one1=np.array([1], np.int64),
    )
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    mod = from_onnx(model)
    reference = build(mod)
    with native(mod) as executable:
        kernel_of(executable)
        for texts, length in PAIRS:
            x = np.random.default_rng(length).standard_normal((texts, length, 8)).astype(np.float32)
            for result, right in zip(run(executable, {"x": x}), run(reference, {"x": x}), strict=True):
                assert result.shape == right.shape
                np.testing.assert_allclose(result, right, rtol=1e-5, atol=1e-5)


def test_nothing_of_other_sizes_is_left(arenas: list[Array]) -> None:
    """A, B, A with an arena of NaN before each run."""
    mod = from_onnx(token_model(["positions", "ranges", "centered"], head="masked mean", texts="batch"))
    reference = build(mod)
    with native(mod) as executable:
        for texts, length in ((3, 7), (1, 48), (3, 7), (5, 2), (1, 1), (2, 64), (3, 7)):
            for arena in arenas:
                arena.fill(0xFF)
            require_right(executable, mod, reference, length, texts)


def test_an_artifact_of_texts_runs_without_the_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from intarsia.toolchain.native import build as native_build

    mod = from_onnx(token_model(["positions", "causal"], head="last", texts="batch"))
    with native(mod) as executable:
        executable.save(tmp_path / "texts.intarsia")
        monkeypatch.setattr(native_build, "build_region", None)
        with load(tmp_path / "texts.intarsia") as loaded:
            kernel_of(loaded)
            for texts, length in PAIRS:
                require_right(loaded, mod, executable, length, texts)


def test_other_numbers_of_texts_and_tokens_are_refused() -> None:
    mod = from_onnx(token_model(["causal"], head="first", texts="batch"))
    with native(mod) as executable:
        kernel = kernel_of(executable)
        given_inputs = list(token_inputs(mod, 5, texts=3).values())
        assert kernel.run(given_inputs, [None])[0] is not None
        with pytest.raises(ExecutionError, match=r"batches of \[2, 3\] items"):
            kernel.run([given_inputs[0], given_inputs[1][:2].copy()], [None])
        with pytest.raises(ExecutionError, match="up to 64 items"):
            kernel.run([*token_inputs(mod, 65, texts=2).values()], [None])
        none = [array[:, :0].copy() for array in given_inputs]
        with pytest.raises(ExecutionError, match="1 items or more here, found 0"):
            kernel.run(none, [None])


def test_a_profile_names_the_sizes() -> None:
    mod = from_onnx(token_model(["layer"], texts="batch"))
    with native(mod) as executable:
        kernel = kernel_of(executable)
        profiler = kernel.start_profiler()
        profiler.run([*token_inputs(mod, 5, texts=3).values()], [None])
        assert {item.name.rsplit(" of ", 1)[1] for item in profiler.stop().kernels} == {"3 x 5"}


@pytest.mark.parametrize("name", ["perceptron", "ranges"])
def test_nothing_of_another_length_is_left(name: str, arenas: list[Array]) -> None:
    """A, B, A with an arena of NaN before each run."""
    mod = program(name)
    reference = build(mod)
    with native(mod) as executable:
        for length in (7, 48, 7, 1, 33, 64, 7):
            for arena in arenas:
                arena.fill(0xFF)
            require_right(executable, mod, reference, length)


def test_an_artifact_runs_without_the_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from intarsia.toolchain.native import build as native_build

    mod = program("ranges")
    with native(mod) as executable:
        executable.save(tmp_path / "block.intarsia")
        monkeypatch.setattr(native_build, "build_region", None)
        with load(tmp_path / "block.intarsia") as loaded:
            kernel_of(loaded)
            for length in (5, 33):
                given_inputs = token_inputs(mod, length)
                for result, right in zip(
                    run(loaded, given_inputs), run(executable, given_inputs), strict=True
                ):
                    assert np.array_equal(result, right)


def test_a_table_ends_at_the_most_tokens() -> None:
    mod = program("perceptron")
    with native(mod) as executable:
        run(executable, token_inputs(mod, 64))
        with pytest.raises(ExecutionError, match="up to 64 items here, found 65"):
            kernel_of(executable).run([token_inputs(mod, 65)["x"]], [None, None])


def test_a_causal_mask_ends_at_the_most_tokens() -> None:
    with native(program("causal")) as executable, pytest.raises(ExecutionError, match="up to 64 items"):
        kernel_of(executable).run([*token_inputs(program("causal"), 65).values()], [None])


@pytest.mark.slow
def test_many_lengths_leave_memory_flat() -> None:
    mod = program("ranges")
    with native(mod) as executable:
        run(executable, token_inputs(mod, 1000))
        for length in range(1, 100):
            run(executable, token_inputs(mod, length))
        PAGES_AHEAD.wait()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for length in range(1, 1001):
            run(executable, token_inputs(mod, length))
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8192  # KiB


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ("y = CumSum (x, one0)", "mixes items"),
        ("y = ReduceProd <keepdims = 0> (x, one1)", "mixes items"),
        (
            "l = Shape <start = 1, end = 2> (x) f = Cast <to = 1> (l) g = Expand (f, l) d = ReduceSum (g) "
            "y = Div (x, d)",
            "number of tokens",
        ),
        ("t = Transpose <perm = [0, 2, 1]> (x) s = MatMul (x, t) y = Softmax (s)", "mixes items"),
        ("y = Transpose <perm = [0, 2, 1]> (x)", "does not have the items in its first axis"),
    ],
)
def test_what_mixes_tokens_is_refused(steps: str, why: str) -> None:
    model = model_of(
        f"g (float[1, length, 8] x) => (float y) {{ {steps} }}",
        opset=18,
        one0=np.int64(1),
        one1=np.array([1], np.int64),
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    with pytest.raises(CompileError, match=why):
        native(from_onnx(model))
