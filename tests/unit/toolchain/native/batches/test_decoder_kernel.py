"""Native kernels of decoders with keys and values of the past: one kernel for every length of the past."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.decoders import FORMS, decoder, growing_logits
from tests.effort import examples

from intarsia import build, load
from intarsia.passes import bind_sizes, partition_whole
from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import Array
from intarsia.support.errors import CompileError, ExecutionError
from intarsia.target import Target
from intarsia.toolchain.native.batches.item_kernel import ItemKernel

RUN = tuple(FORMS)
SIZES = (
    (1, 1, 0),
    (1, 1, 1),
    (2, 3, 5),
    (1, 7, 0),
    (3, 1, 33),
    (2, 1, 34),
    (1, 1, 35),
    (2, 3, 5),
    (1, 17, 40),
)
"""Numbers of texts, of new tokens, and of past ones."""


def native(form: str, threads: int = 1) -> Executable:
    size = replace(FORMS[form], layers=2)
    return build(partition_whole(decoder(size), Target(f"cpu -toolchain=native -threads={threads}")))


def kernel_of(executable: Executable) -> ItemKernel:
    (kernel,) = executable.kernels
    assert isinstance(kernel, ItemKernel)
    return kernel


def inputs_of(executable: Executable, form: str, texts: int, tokens: int, past: int) -> dict[str, Array]:
    """Return random arguments; the first two past tokens of the first text are padding."""
    size, rng = FORMS[form], np.random.default_rng((texts, tokens, past))
    mask = np.ones((texts, past + tokens), np.int64)
    mask[0, : min(2, past)] = 0
    positions = np.maximum(np.cumsum(mask, 1) - 1, 0)[:, past:]
    state = (texts, size.shared_heads, past, size.head_width)
    made = {
        "input_ids": rng.integers(0, size.vocabulary, (texts, tokens)),
        "attention_mask": mask,
        "position_ids": positions,
    }
    return {
        info.name: made[info.name] if info.name in made else rng.standard_normal(state).astype(np.float32)
        for info in executable.inputs
    }


def require_right(executable: Executable, right: Executable, form: str, sizes: tuple[int, int, int]) -> None:
    given_inputs = inputs_of(executable, form, *sizes)
    pairs = zip(executable.run_flat(**given_inputs), right.run_flat(**given_inputs), strict=True)
    for result, expected in pairs:
        assert isinstance(result, np.ndarray)
        assert isinstance(expected, np.ndarray)
        assert result.shape == expected.shape
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.quick_cases(6)
@pytest.mark.parametrize("form", RUN)
def test_every_number_of_texts_and_tokens_is_right(form: str) -> None:
    right = build(decoder(replace(FORMS[form], layers=2)), "onnxruntime")
    with native(form) as executable:
        kernel_of(executable)
        for sizes in SIZES:
            require_right(executable, right, form, sizes)


@pytest.mark.parametrize("form", ["llama", "positions of the past", "no mask"])
def test_a_decoder_of_a_single_text(form: str) -> None:
    module = bind_sizes(decoder(replace(FORMS[form], layers=2)), {"batch_size": 1})
    right = build(module, "onnxruntime")
    with build(partition_whole(module, Target("cpu -toolchain=native -threads=1"))) as executable:
        kernel_of(executable)
        for _, tokens, past in SIZES:
            require_right(executable, right, form, (1, tokens, past))


@pytest.mark.slow
@settings(max_examples=examples(60, 8), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(RUN),
    st.integers(1, 2),
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 19), st.integers(0, 90)), min_size=3, max_size=6),
)
def test_random_sizes_are_right(form: str, threads: int, sizes: list[tuple[int, int, int]]) -> None:
    right = build(decoder(replace(FORMS[form], layers=2)), "onnxruntime")
    with native(form, threads) as executable:
        for drawn in sizes:
            require_right(executable, right, form, drawn)


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(
    ("form", "new"),
    [("gpt2", 3), ("gpt2", 1), ("fused groups", 1), ("fused groups", 3), ("grouped", 3), ("grouped", 1)],
)
def test_a_past_beside_a_fixed_number_of_tokens(form: str, new: int) -> None:
    module = decoder(replace(FORMS[form], layers=2))
    right = build(module, "onnxruntime")
    fixed = bind_sizes(module, {"sequence_length": new})
    with build(partition_whole(fixed, Target("cpu -toolchain=native -threads=1"))) as executable:
        for texts, _, past in SIZES:
            require_right(executable, right, form, (texts, new, past))
        kernel, given_inputs = kernel_of(executable), inputs_of(executable, form, 1, new + 1, 5)
        with pytest.raises(ExecutionError, match="native runs"):
            kernel.run([*given_inputs.values()], [None] * len(executable.outputs))


@pytest.mark.parametrize("form", ["gpt2", pytest.param("grouped", marks=pytest.mark.slow)])
def test_nothing_of_another_past_is_left(form: str, arenas: list[Array]) -> None:
    """A, B, A with an arena of NaN before each run."""
    right = build(decoder(replace(FORMS[form], layers=2)), "onnxruntime")
    with native(form, 2) as executable:
        for sizes in ((2, 3, 5), (1, 1, 60), (2, 3, 5), (1, 9, 0), (1, 1, 1), (3, 1, 40), (2, 3, 5)):
            for arena in arenas:
                arena.fill(0xFF)
            require_right(executable, right, form, sizes)


def test_a_text_is_read_token_by_token() -> None:
    size = replace(FORMS["gpt2"], layers=2)
    tokens = np.random.default_rng(0).integers(0, size.vocabulary, (2, 40))
    expected = growing_logits(size, tokens)
    with native("gpt2") as executable:
        states = [info.name for info in executable.inputs if info.name.startswith("past")]
        past = dict.fromkeys(states, np.zeros((2, size.shared_heads, 0, size.head_width), np.float32))
        for end in range(1, 41):
            given_inputs = {
                "input_ids": tokens[:, end - 1 : end].copy(),
                "attention_mask": np.ones((2, end), np.int64),
                "position_ids": np.full((2, 1), end - 1),
                **past,
            }
            logits, *present = executable.run_flat(**given_inputs)
            assert isinstance(logits, np.ndarray)
            np.testing.assert_allclose(logits[:, 0], expected[:, end - 1], rtol=1e-4, atol=1e-4)
            past = {
                name: item for name, item in zip(states, present, strict=True) if isinstance(item, np.ndarray)
            }


def test_steps_share_memory_and_calls(arenas: list[Array]) -> None:
    with native("gpt2") as executable:
        for past in range(33, 60):
            executable.run_flat(**inputs_of(executable, "gpt2", 1, 1, past))
        allocated = len(arenas)
        for past in range(33, 63):
            executable.run_flat(**inputs_of(executable, "gpt2", 1, 1, past))
        assert len(arenas) == allocated


def test_an_artifact_runs_without_the_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from intarsia.toolchain.native import build as native_build

    with native("positions of the past") as executable:
        executable.save(tmp_path / "decoder.intarsia")
        monkeypatch.setattr(native_build, "build_item_region", None)
        with load(tmp_path / "decoder.intarsia") as loaded:
            kernel_of(loaded)
            for sizes in SIZES:
                require_right(loaded, executable, "positions of the past", sizes)


def test_what_does_not_fit_is_refused() -> None:
    with native("gpt2") as executable:
        kernel = kernel_of(executable)
        given_inputs = inputs_of(executable, "gpt2", 2, 1, 5)
        outputs = [None] * len(executable.outputs)
        shorter = given_inputs | {"attention_mask": np.ones((2, 5), np.int64)}
        with pytest.raises(ExecutionError, match=r"needs the shape \(2, 6\), found \(2, 5\)"):
            kernel.run([*shorter.values()], outputs)
        other = next(name for name in given_inputs if name.startswith("past"))
        with pytest.raises(ExecutionError, match="expected one size"):
            kernel.run([*(given_inputs | {other: given_inputs[other][:, :, :4].copy()}).values()], outputs)
        with pytest.raises(ExecutionError, match="1 items or more here, found 0"):
            kernel.run([*inputs_of(executable, "gpt2", 1, 0, 5).values()], outputs)


def test_a_window_is_refused() -> None:
    """What is visible of it is neither by key nor on a side of the query."""
    module = decoder(replace(FORMS["gpt2"], layers=1, window=7))
    with pytest.raises(CompileError, match="native cannot compile this"):
        build(partition_whole(module, Target("cpu -toolchain=native -threads=1")))
