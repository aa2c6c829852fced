"""Programs on texts of any length on a fake GPU, whose kernels are the LLVM IR for NVPTX on this CPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from tests.decoders import FORMS as DECODERS
from tests.decoders import decoder
from tests.gpu_on_cpu.fake_machine import machine_with_gpus
from tests.token_programs import (
    COUNTED,
    FORMS,
    HEADS,
    NEIGHBOURS,
    OPERATORS,
    POOLED,
    PROGRAMS,
    program,
    token_inputs,
    token_model,
)
from tests.unit.toolchain.native.batches.test_decoder_kernel import require_right

from intarsia import build, from_onnx
from intarsia.ir import IRModule
from intarsia.passes import partition_whole
from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import Array
from intarsia.support.errors import ExecutionError
from intarsia.target import Target
from intarsia.toolchain.native.gpu.gpu_kernel import GpuKernel

TARGET = Target("cuda -toolchain=native")
LENGTHS = (7, 1, 64, 31, 7)
"""Lengths; the same one comes again behind others. Tables of these programs end at 64."""
PAIRS = ((1, 1), (3, 7), (2, 64), (5, 13), (3, 7))
"""Numbers of texts, and of tokens of each."""
QUICK = (list(FORMS)[3], list(OPERATORS)[1])


@pytest.fixture(autouse=True)
def _one_gpu() -> Iterator[None]:
    with machine_with_gpus():
        yield


def on_gpu(mod: IRModule) -> Executable:
    return build(partition_whole(mod, TARGET))


def arrays(executable: Executable, inputs: dict[str, Array]) -> list[Array]:
    return [item for item in executable.run_flat(**inputs) if isinstance(item, np.ndarray)]


def check(mod: IRModule, executable: Executable, reference: Executable, length: int, texts: int = 1) -> None:
    inputs = token_inputs(mod, length, texts=texts)
    for result, right in zip(arrays(executable, inputs), arrays(reference, inputs), strict=True):
        assert result.shape == right.shape
        np.testing.assert_allclose(result, right, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_text_of_any_length_is_right(name: str) -> None:
    mod = program(name)
    with on_gpu(mod) as executable, build(mod) as reference:
        assert [type(kernel) for kernel in executable.kernels] == [GpuKernel]
        for length in LENGTHS:
            check(mod, executable, reference, length)


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([name, "norm"], marks=() if name in QUICK else pytest.mark.slow)
        for name in (*FORMS, *POOLED, *NEIGHBOURS, *COUNTED, *OPERATORS, "positions")
    ],
    ids=lambda steps: steps[0],
)
def test_several_texts_of_any_length_are_right(steps: list[str]) -> None:
    mod = from_onnx(token_model(steps, texts="batch"))
    with on_gpu(mod) as executable, build(mod) as reference:
        for texts, length in PAIRS:
            check(mod, executable, reference, length, texts)


@pytest.mark.slow
@pytest.mark.parametrize("head", HEADS)
def test_what_texts_become_is_right(head: str) -> None:
    mod = from_onnx(token_model(["masked", "centered"], head=head, texts="batch"))
    with on_gpu(mod) as executable, build(mod) as reference:
        for texts, length in PAIRS:
            check(mod, executable, reference, length, texts)


PASTS = ((1, 1, 0), (1, 1, 1), (2, 3, 5), (3, 1, 33), (1, 7, 60), (1, 1, 0), (2, 3, 5))
"""Numbers of texts, of new tokens, and of past ones."""


@pytest.mark.slow
@pytest.mark.parametrize("form", DECODERS)
def test_a_decoder_runs_beside_any_past(form: str) -> None:
    mod = decoder(replace(DECODERS[form], layers=2))
    with on_gpu(mod) as executable, build(mod, "native") as reference:
        assert [type(kernel) for kernel in executable.kernels] == [GpuKernel]
        for sizes in PASTS:
            require_right(executable, reference, form, sizes)


def test_longer_texts_than_kernels_are_for_are_refused() -> None:
    mod = from_onnx(token_model(["plain"], texts="batch"))
    with on_gpu(mod) as executable, pytest.raises(ExecutionError, match="native runs up to 4096 items here"):
        executable.run_flat(**token_inputs(mod, 4097))
