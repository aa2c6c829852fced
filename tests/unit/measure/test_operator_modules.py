"""Calls of workers that import the modules of registered operators first."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.registered_operators import gated_registered

from intarsia.measure.operator_modules import call_with_modules, with_operators


def test_a_call_stays_as_it_is_without_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("intarsia.measure.operator_modules.registering_modules", lambda: ())
    assert with_operators(len, ("abc",)) == (len, ("abc",))


def test_modules_are_imported_before_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "module_of_an_operator.py").write_text("NUMBER = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert call_with_modules(("module_of_an_operator",), len, ("abc",)) == 3
    assert sys.modules.pop("module_of_an_operator").NUMBER == 1
    with pytest.raises(ImportError, match="no_such_module"):
        call_with_modules(("no_such_module",), len, ("abc",))


def test_the_modules_of_registered_operators_are_sent() -> None:
    with gated_registered():
        function, arguments = with_operators(len, ("abc",))
    assert function is call_with_modules
    modules, *rest = arguments
    assert isinstance(modules, tuple)
    assert "tests.registered_operators" in modules
    assert rest == [len, ("abc",)]
