"""The benchmark on GPUs: its rows on a fake GPU, and what it says without one."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks import gpu
from tests.gpu_on_cpu.fake_gpu import fake_context, fake_image

from intarsia.native.gpu.ptxas import find_ptxas
from intarsia.runtime.cuda.cuda_context import CudaContext


@pytest.fixture
def context() -> Iterator[CudaContext]:
    opened = fake_context()
    yield opened
    opened.close()


def test_without_a_driver_it_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code = gpu.main(["--library", "libnothing.so.1", "--output", str(tmp_path / "rows")])
    assert code == gpu.NO_DEVICE
    assert "there is no NVIDIA driver here" in capsys.readouterr().err
    assert not (tmp_path / "rows").exists()


def test_a_model_has_a_row(context: CudaContext) -> None:
    row = gpu.measure("mnist", context, "sm_80", fake_image, runs=1)
    assert (row.name, row.gpu, row.launches > 0, row.microseconds > 0) == ("mnist", "Fake GPU 0", True, True)
    assert row.error is None or row.error < 1e-4


def test_a_layer_has_a_row(context: CudaContext) -> None:
    row = gpu.measure("product_128", context, "sm_80", fake_image, runs=1)
    assert row.launches == 1
    assert row.rival_microseconds is None


def test_code_is_for_the_gpus_capability() -> None:
    assert [gpu.model_for(capability) for capability in ((8, 0), (9, 0), (12, 0))] == [
        "sm_80",
        "sm_90a",
        "sm_80",
    ]


def test_a_row_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    row = gpu.measure_in_child("mnist", 60)
    assert row["name"] == "mnist"
    assert "NVIDIA driver" in row["problem"] or row.keys() >= {"microseconds"}


@pytest.mark.skipif(find_ptxas() is None, reason="there is no ptxas: pip install 'intarsia[ptxas]'")
def test_a_check_needs_no_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu.main(["--check", "--rows", "product_128", "mnist"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["name"] for row in rows] == ["product_128", "mnist"]
    assert all(row["kernels_that_spill"] == 0 < row["most_registers"] <= 255 for row in rows)
