"""Programs of graphs: the first right toolchain, tuned ones, and those that the database remembers."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is an extra: pip install 'intarsia[torch]'")
pytest.importorskip("onnxscript", reason="onnxscript comes with the extra torch")

import torch
from tests import torch_modules

import intarsia as ia
from intarsia.measure.database import Database
from intarsia.runtime.executable import Executable
from intarsia.torch_compile import programs
from intarsia.torch_compile.fallback import FallbackWarning


@pytest.fixture(autouse=True)
def inference() -> Any:
    with torch.no_grad():
        yield


def wrong_results_of(toolchain: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a toolchain compute wrong results."""
    run_flat = Executable.run_flat

    def wrong(self: Executable, /, *args: object, **named: object) -> Any:
        results = run_flat(self, *args, **named)
        is_of_toolchain = any(toolchain in name for name in self.kernel_names)
        return [result * 1.01 for result in results] if is_of_toolchain else results  # type: ignore[operator]

    monkeypatch.setattr(Executable, "run_flat", wrong)


def calls_of(name: str, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Arguments of the calls of a function that `programs` uses."""
    calls: list[Any] = []
    original = getattr(programs, name)

    def record(*args: Any, **named: Any) -> Any:
        calls.append(args)
        return original(*args, **named)

    monkeypatch.setattr(programs, name, record)
    return calls


def test_a_toolchain_with_wrong_results_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong_results_of("native", monkeypatch)
    model, x = torch_modules.linear(), torch.randn(2, 8)
    fast = torch.compile(model, backend="intarsia", options={"strict": True})
    torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-5)


def test_no_right_toolchain_is_an_error_with_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong_results_of("native", monkeypatch)
    options = {"strict": True, "toolchains": ["native"]}
    with pytest.raises(Exception, match=r"no toolchain .*: native: its results differ from"):
        torch.compile(torch_modules.linear(), backend="intarsia", options=options)(torch.randn(2, 8))


@pytest.mark.slow
def test_a_tuned_program_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"strict": True, "budget": "3s", "toolchains": ["native", "onnxruntime"]}
    options["database"] = str(tmp_path / "measurements.db")
    model, x = torch_modules.linear(), torch.randn(2, 8)
    tuned = calls_of("tune", monkeypatch)
    for _ in range(2):  # the second time as another process would
        fast = torch.compile(model, backend="intarsia", options=options)
        torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-5)
        torch.compiler.reset()
    assert len(tuned) == 1


@pytest.mark.slow
def test_a_result_of_tune_is_used_without_a_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, x = tmp_path / "measurements.db", torch.randn(2, 8)
    model = torch_modules.linear()
    with Database.open(place, create=True) as database:
        result = ia.tune(model, x, budget="3s", database=database)
    built = calls_of("instantiate", monkeypatch)
    fast = torch.compile(model, backend="intarsia", options={"strict": True, "database": str(place)})
    torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-5)
    assert [candidate.digest for _, _, candidate in built] == [result.plan.candidate.digest]


def test_a_database_that_cannot_be_opened_is_a_warning(tmp_path: Path) -> None:
    options = {"strict": True, "toolchains": ["native"], "database": str(tmp_path / "none" / "m.db")}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.compile(torch_modules.linear(), backend="intarsia", options=options)(torch.randn(2, 8))
    texts = [str(item.message) for item in caught if item.category is FallbackWarning]
    assert any("measurements are not kept" in text for text in texts)
