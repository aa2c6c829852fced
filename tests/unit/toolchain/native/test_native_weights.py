"""Targets that say in which type weights are stored: from the option to an artifact and back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from intarsia.native.graph import WeightStorage
from intarsia.runtime.kernel import Array, KernelSource
from intarsia.support.aligned_memory import aligned_array
from intarsia.support.errors import UsageError
from intarsia.target import Target
from intarsia.toolchain.native.blob import read_blob
from intarsia.toolchain.native.build import build_region
from intarsia.toolchain.native.options import WEIGHTS
from intarsia.toolchain.native.toolchain import Native

SourceOf = Callable[..., KernelSource]
WEIGHT = aligned_array(np.random.default_rng(0).standard_normal((2048, 1800)).astype(np.float32))


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of the user that is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def product(source_of: SourceOf, storage: str) -> KernelSource:
    """A row times a matrix that is larger than the second-level cache of any machine."""
    return source_of(
        "native",
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        [_value("x", 1, 2048)],
        [_value("y", 1, 1800)],
        weights={"w": WEIGHT},
        options=f"-threads=1 -weights={storage}",
    )


def _value(name: str, *shape: int) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def _row() -> Array:
    return np.random.default_rng(1).standard_normal((1, 2048)).astype(np.float32)


def test_the_option_names_every_storage() -> None:
    assert [storage.value for storage in WeightStorage] == list(WEIGHTS.choices)
    assert not WEIGHTS.keeps_results
    with pytest.raises(UsageError, match="expected f32 or f16 or bf16 or int8"):
        Target("cpu -toolchain=native -weights=int4")


@pytest.mark.parametrize("storage", list(WeightStorage), ids=lambda storage: storage.value)
def test_a_blob_gives_the_same_results_without_packing(source_of: SourceOf, storage: WeightStorage) -> None:
    source, x = product(source_of, storage.value), _row()
    kernel = Native().load(source)
    (expected,) = kernel.run([x], [None])
    blob = kernel.blob()
    assert blob is not None
    (found,) = Native().load(source, blob).run([x], [None])
    np.testing.assert_array_equal(found, expected)
    stored = [each for each in read_blob(blob, source.weights).constants if each.array.size > WEIGHT.size / 2]
    assert [each.array.dtype for each in stored] == [storage.dtype.numpy]
    assert [each.weight is None for each in stored] == [storage is not WeightStorage.F32]


@pytest.mark.parametrize("storage", list(WeightStorage), ids=lambda storage: storage.value)
def test_results_are_within_the_error_of_the_storage(source_of: SourceOf, storage: WeightStorage) -> None:
    x = _row()
    (found,) = Native().load(product(source_of, storage.value)).run([x], [None])
    exact = x.astype(np.float64) @ WEIGHT.astype(np.float64)
    size = np.abs(x).sum() * np.abs(WEIGHT).max(axis=0)
    assert (np.abs(found - exact) <= size * (storage.relative_error + 2048 * 2.0**-24)).all()


def test_constants_take_a_quarter_of_the_bytes_as_int8(source_of: SourceOf) -> None:
    sizes = {
        storage: sum(each.array.nbytes for each in build_region(product(source_of, storage.value)).constants)
        for storage in (WeightStorage.F32, WeightStorage.INT8)
    }
    assert sizes[WeightStorage.INT8] < 0.3 * sizes[WeightStorage.F32]


def test_a_transposed_weight_stays_a_weight(source_of: SourceOf) -> None:
    """Square, so that only strides tell the weight from its transpose, which the program reads as well."""
    weight = aligned_array(np.random.default_rng(2).standard_normal((256, 256)).astype(np.float32))
    source = source_of(
        "native",
        [
            helper.make_node("Gemm", ["x", "w"], ["between"], transB=1),
            helper.make_node("MatMul", ["between", "w"], ["y"]),
        ],
        [_value("x", 40, 256)],
        [_value("y", 40, 256)],
        weights={"w": weight},
        options="-threads=1",
    )
    region = build_region(source)
    assert [constant.weight for constant in region.constants] == ["w", "w"]
    x = np.random.default_rng(3).standard_normal((40, 256)).astype(np.float32)
    expected = x.astype(np.float64) @ weight.T @ weight
    kernel = Native().load(source)
    blob = kernel.blob()
    assert blob is not None
    assert len(blob) < weight.nbytes
    for loaded in (kernel, Native().load(source, blob)):
        y = np.empty((40, 256), np.float32)
        loaded.run((x,), (y,))
        np.testing.assert_allclose(y, expected, rtol=1e-3, atol=1e-2)
