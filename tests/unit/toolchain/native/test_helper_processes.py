"""Processes that generate kernels beside this one: the same kernels, whatever happens to the processes."""

from __future__ import annotations

import sys
import time
from collections import deque
from pathlib import Path

import pytest

from intarsia.ir import DType
from intarsia.native import compile_kernel, te
from intarsia.native.dag import ComputeDAG
from intarsia.native.machine.isa import Isa
from intarsia.native.object_code.codegen import DEFAULT_OPTIONS
from intarsia.native.object_code.kernel_cache import KernelCache
from intarsia.native.schedule import ScheduleLog
from intarsia.support.environment import COMPILE_PROCESSES
from intarsia.support.errors import CompileError
from intarsia.toolchain.native import helper_processes as helpers_module
from intarsia.toolchain.native.compile import compile_dags
from intarsia.toolchain.native.generate_kernel import KernelGenerator
from intarsia.toolchain.native.helper_processes import Row, count_helpers, helper_processes
from intarsia.transform import PassContext, PassSettings
from intarsia.transform.instrument import PassInstrument

ISA = Isa.host()
IMPORTS = "import json, os, pickle, sys; sys.path[:] = json.loads(sys.argv[1]); "


def scaled(extent: int) -> ComputeDAG:
    """Twice a vector."""
    x = te.placeholder((extent,), DType.FLOAT32, "x")
    return ComputeDAG((x, te.compute((extent,), lambda i: x[i] * 2.0, "y")))


DAGS = [scaled(extent) for extent in range(1, 49)]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """The code that this process generates alone."""
    return codes(tmp_path_factory.mktemp("alone"))


def codes(folder: Path) -> list[bytes]:
    compiled = compile_dags(DAGS, ISA, 1, KernelCache(folder))
    assert list(compiled) == DAGS
    return [kernel.kernel.object_code for kernel in compiled.values()]


@pytest.mark.parametrize("log", [None, ScheduleLog({"another computation": "[]"})], ids=["rules", "log"])
def test_helpers_generate_the_same_kernels(log: ScheduleLog | None, expected: list[bytes]) -> None:
    generator = KernelGenerator(ISA, 1, log, DEFAULT_OPTIONS)
    row: Row = deque((dag, None) for dag in DAGS)
    with helper_processes(2, row, generator, PassSettings()) as helpers:
        while row:
            helpers.attend()
            time.sleep(0.01)
        kernels = helpers.finish()
    assert [kernels[dag].object_code for dag in DAGS] == expected


def test_both_sides_take_from_the_row(
    expected: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(COMPILE_PROCESSES, "2")
    assert codes(tmp_path) == expected


@pytest.mark.parametrize(
    "launch",
    [
        pytest.param("sys.exit(1)", id="ends at once"),
        pytest.param("os.abort()", id="crashes"),
        pytest.param("sys.stdin.buffer.read(1); print('not a kernel', flush=True)", id="answers nonsense"),
        pytest.param(
            "source = sys.stdin.buffer; pickle.load(source); pickle.load(source); text = pickle.dumps(None); "
            "sys.stdout.buffer.write(len(text).to_bytes(8, 'little') + text); sys.stdout.flush(); "
            "sys.stdin.read()",
            id="fails at a kernel",
        ),
    ],
)
def test_what_a_helper_fails_at_is_generated_here(
    launch: str, expected: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(COMPILE_PROCESSES, "1")
    monkeypatch.setattr(helpers_module, "_LAUNCH", IMPORTS + launch)
    assert codes(tmp_path) == expected


@pytest.mark.parametrize("error", [TypeError, AttributeError, RecursionError])
def test_what_cannot_be_sent_is_generated_here(
    error: type[Exception], expected: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(content: object) -> bytes:
        raise error("cannot be pickled")

    monkeypatch.setenv(COMPILE_PROCESSES, "1")
    monkeypatch.setattr(helpers_module, "_message", refuse)
    assert codes(tmp_path) == expected


def test_a_helper_that_hangs_is_not_waited_for(
    expected: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(COMPILE_PROCESSES, "1")
    monkeypatch.setattr(helpers_module, "_LAUNCH", IMPORTS + "sys.stdin.buffer.read()")
    monkeypatch.setattr(helpers_module, "_SECONDS", 0.1)
    assert codes(tmp_path) == expected


def test_kernels_that_a_helper_has_not_begun_are_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helpers_module, "_LAUNCH", IMPORTS + "sys.stdin.buffer.read()")
    row: Row = deque((dag, None) for dag in DAGS[:3])
    generator = KernelGenerator(ISA, 1, None, DEFAULT_OPTIONS)
    with helper_processes(1, row, generator, PassSettings()) as helpers:
        assert not row
        # The last one was sent first, and is the one that the helper works on.
        assert [helpers.take_back() for _ in range(3)] == [(DAGS[0], None), (DAGS[1], None), None]
        assert helpers.take_back() is None


def test_an_error_is_raised_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(COMPILE_PROCESSES, "1")

    def refuse(*arguments: object) -> None:
        raise CompileError("refused")

    monkeypatch.setattr(compile_kernel, "compile_kernel", refuse)
    with pytest.raises(CompileError, match="refused"):
        codes(tmp_path)


@pytest.mark.parametrize("python", ["/missing/python", "", None])
def test_no_process_can_be_started(
    python: str | None, expected: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(COMPILE_PROCESSES, "1")
    monkeypatch.setattr(sys, "executable", python)
    assert codes(tmp_path) == expected


def test_instruments_watch_all_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(COMPILE_PROCESSES, "2")
    monkeypatch.setattr(helpers_module.Helpers, "add", None)
    with PassContext(instruments=[PassInstrument()]):
        compile_dags(DAGS, ISA, 1, KernelCache(tmp_path))


def test_the_number_of_helpers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(COMPILE_PROCESSES, "3")
    assert [count_helpers(kernels) for kernels in (0, 31, 32, 48, 64, 1000)] == [0, 0, 1, 2, 3, 3]
    monkeypatch.setenv(COMPILE_PROCESSES, "0")
    assert count_helpers(1000) == 0
    monkeypatch.delenv(COMPILE_PROCESSES)
    monkeypatch.setattr(helpers_module, "usable_cores", lambda _root: 64)
    assert count_helpers(1000) == 15
    assert count_helpers(40) == 1
