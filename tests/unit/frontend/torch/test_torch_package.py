"""What a user without PyTorch sees."""

from __future__ import annotations

import sys

import pytest

import intarsia as ia
from intarsia.frontend.torch.torch_package import INSTALL, is_torch_model
from intarsia.support.errors import UsageError


@pytest.mark.parametrize("package", ["torch", "onnxscript"])
def test_a_missing_package_is_one_clear_error(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    if package == "onnxscript":
        pytest.importorskip("torch")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UsageError) as caught:
        ia.from_torch(object(), ())
    assert caught.value.problem == f"models of PyTorch need the package {package}, which is missing"
    assert caught.value.help == INSTALL


def test_the_question_for_a_model_does_not_import_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert not is_torch_model(object())
    assert "torch" not in sys.modules
