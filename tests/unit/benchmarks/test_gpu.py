"""The benchmark on GPUs: its rows on a fake GPU, and what it says without one."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from benchmarks import gpu, gpu_rows
from benchmarks.gpu_layers import Layer, convolution, layers, product, rows
from benchmarks.gpu_references import relative_error
from benchmarks.gpu_rows import Row
from benchmarks.gpu_timing import NativeRuns, copies_for, runs_for, torch_batch
from tests.gpu_on_cpu.fake_gpu import fake_context, fake_image
from tests.gpu_on_cpu.fake_machine import machine_with_gpus, machine_without_driver
from tests.gpu_on_cpu.ptxas_checks import needs_ptxas

import intarsia as ia
from intarsia.ir.parser import parse_module
from intarsia.passes import InferType
from intarsia.runtime.cuda.cuda_context import CudaContext
from intarsia.support.errors import MissingToolchainError
from intarsia.toolchain.native.gpu.loaded_program import LoadedProgram


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


@pytest.mark.slow  # builds a model twice
def test_a_model_has_its_time_before_its_error(context: CudaContext) -> None:
    program = gpu_rows.compiled("mnist", "sm_80", fake_image)
    first, last = (dict(row) for row in gpu_rows.measure("mnist", context, program, runs=1))
    assert first["microseconds"] > 0
    assert "error" not in first
    assert 0 < last["error"] < 1e-5
    assert last["launches"] == len(program.launches)


@pytest.mark.parametrize("name", ["product_128", "product_float16_128"])
def test_a_layer_has_its_error_and_says_what_torch_lacks(context: CudaContext, name: str) -> None:
    program = gpu_rows.compiled(name, "sm_80", fake_image)
    *_, row = gpu_rows.measure(name, context, program, runs=1)
    assert row["error"] < 1e-3
    assert row["launches"] == 1
    assert ("rival" in row) != ("rival_microseconds" in row)


@pytest.mark.parametrize("layer", [product(5, 6, 7), convolution(3, 5), rows(4, 9)])
def test_layers_are_computed_in_float64_as_their_programs_do(layer: Layer) -> None:
    mod, rng = InferType()(parse_module(layer.text)), np.random.default_rng(1)
    with ia.build(mod, "cpu -toolchain=reference") as exe:
        inputs = [
            rng.standard_normal([int(size) for size in info.shape or ()]).astype(np.float32)
            for info in exe.inputs
        ]
        results = [np.asarray(result) for result in exe.run_flat(*inputs)]
    assert relative_error(results, [layer.exact(*(array.astype(np.float64) for array in inputs))]) < 1e-6


def test_a_batch_runs_on_all_copies_of_the_inputs(
    context: CudaContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CudaContext, "cache_bytes", 10_000)
    program = gpu_rows.compiled("product_128", "sm_80", fake_image)
    inputs = gpu_rows.inputs_of(program)
    assert copies_for(inputs, 200_000) == 4
    assert copies_for(inputs, 0) == 1
    runs = NativeRuns.of(context, LoadedProgram(context, program), inputs)
    assert runs.batch()() > 0
    assert runs_for(1.0) == 1
    assert runs_for(1e-5) == 64


def test_other_toolchains_have_a_time_or_a_reason() -> None:
    mod = InferType()(parse_module("def @main(%x: Tensor[(8, 8), float32]) { MatMul(%x, %x) }"))
    x = np.ones((8, 8), np.float32)
    with machine_with_gpus():
        row = gpu_rows.engine_row("square", mod, [x], "native", runs=2)
        assert row["microseconds"] > 0
        assert "reference makes kernels for the CPU only" in gpu_rows.why_unusable("reference")
        assert "nothing" in gpu_rows.why_unusable("nothing")
        assert not gpu_rows.why_unusable("native")
    with machine_without_driver(), pytest.raises(MissingToolchainError):
        gpu_rows.engine_row("square", mod, [x], "native")


class FakeTorch:
    """The functions of torch that the benchmark calls, without a GPU; time goes by with each run."""

    def __init__(self) -> None:
        self.milliseconds = 0.0
        clock = self

        class Event:
            def __init__(self, *, enable_timing: bool) -> None:
                assert enable_timing

            def record(self) -> None:
                self.at = clock.milliseconds

            def synchronize(self) -> None:
                pass

            def elapsed_time(self, later: "Event") -> float:
                return later.at - self.at

        class Graph:
            def __enter__(self) -> None:
                self.before = clock.milliseconds

            def __exit__(self, *_: object) -> None:
                self.recorded = clock.milliseconds - self.before

            def replay(self) -> None:
                clock.milliseconds += self.recorded

        self.cuda = SimpleNamespace(Event=Event, CUDAGraph=Graph, graph=lambda graph: graph)

    @staticmethod
    def from_numpy(array: object) -> SimpleNamespace:
        return SimpleNamespace(cuda=lambda: array)

    def square(self, x: np.ndarray) -> None:
        self.milliseconds += 0.25


def test_torch_is_timed_by_recorded_runs() -> None:
    torch = FakeTorch()
    batch = torch_batch(torch, torch.square, [np.ones(4, np.float32)], 100)
    assert batch() == pytest.approx(0.25e-3)


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("", None),
        ("raise SystemExit('lost')", "lost"),
        ("import os; os.abort()", "exit code -6"),
        ("import time; time.sleep(600)", "not done after 5 s"),
    ],
)
def test_a_child_that_fails_keeps_the_rows_before(
    code: str, problem: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, text = subprocess.run, f"print('note'); print('{{\"name\": 1}}', flush=True); {code}"
    monkeypatch.setattr(subprocess, "run", lambda _, **given: run([sys.executable, "-c", text], **given))
    row = gpu.row_of_child([], {"name": 0}, 5)
    assert row == ({"name": 1} if problem is None else {"name": 1, "problem": problem})


def test_each_part_that_fails_loses_its_own_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(arguments: Sequence[str], row: Row, seconds: float) -> Row:
        assert 0 < seconds <= 100
        if arguments[:2] == ["--compile", "mnist"]:
            return row | {"problem": "refused"}
        if "--engine" in arguments and arguments[1] == "bert_tiny":
            return row | {"problem": "lost"}
        return row | {"microseconds": 1.0}

    monkeypatch.setattr(gpu, "why_unusable", lambda engine: "" if engine == "torch" else "missing")
    written: list[Row] = []
    gpu.measure_all(["product_128", "mnist", "bert_tiny", "dcgan"], 100.0, "sm_80", written.append, run)
    problems = {(row.get("name"), row["part"]): row.get("problem") for row in written}
    assert problems.pop(("mnist", "native")) == "refused"
    assert problems.pop(("bert_tiny", "torch")) == "lost"
    assert problems.pop((None, "tensorrt")) == "missing"
    measured = {key for key, problem in problems.items() if problem is None}
    native = {(name, "native") for name in ("product_128", "bert_tiny", "dcgan")}
    assert measured == native | {("mnist", "torch"), ("dcgan", "torch")}


def test_rows_without_time_say_so() -> None:
    written: list[Row] = []
    gpu.measure_all(["product_128"], -1.0, "sm_80", written.append, lambda _, row, __: row)
    assert written == [{"name": "product_128", "part": "native", "problem": "no time left"}]


@pytest.mark.slow  # starts a process
def test_a_row_that_fails_says_why() -> None:
    row = gpu.row_of_child(["--only", "mnist"], {"name": "mnist"}, 120)
    assert row["name"] == "mnist"
    assert "NVIDIA driver" in row["problem"] or row.keys() >= {"microseconds"}


def test_all_layers_have_a_name_of_their_own() -> None:
    assert len({layer.text for layer in layers().values()}) == len(layers())


@needs_ptxas
def test_a_check_needs_no_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu.main(["--check", "--rows", "product_128", "product_float16_128", "mnist"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["name"] for row in rows] == ["product_128", "product_float16_128", "mnist"]
    assert all(row["kernels_that_spill"] == 0 < row["most_registers"] <= 255 for row in rows)


@pytest.mark.parametrize(("problem", "code"), [({}, 0), ({"problem": "a result differs"}, 1)])
def test_a_wrong_level_is_a_failure(
    problem: dict[str, str], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results = [{"name": "relu", **problem}, {"name": "summary"}]
    monkeypatch.setattr(gpu, "check_levels", lambda _: iter(results))
    assert gpu.main(["--check", "--levels", "--rows"]) == code
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == results
