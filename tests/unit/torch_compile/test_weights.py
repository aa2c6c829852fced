"""Weights as constants: what happens when they change, and when other ones are passed."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is an extra: pip install 'intarsia[torch]'")
pytest.importorskip("onnxscript", reason="onnxscript comes with the extra torch")

import torch
from tests import torch_modules

from intarsia.torch_compile import compiled_graph
from intarsia.torch_compile.fallback import FallbackWarning
from intarsia.torch_compile.programs import Programs


@pytest.fixture(autouse=True)
def inference() -> Any:
    with torch.no_grad():
        yield


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The inputs of each executable that is built."""
    seen: list[list[str]] = []
    for name in ("build_first", "build_again"):
        original = getattr(Programs, name)

        def record(self: Programs, module: Any, *args: Any, original: Any = original) -> Any:
            seen.append([param.name for param in module["main"].params])
            return original(self, module, *args)

        monkeypatch.setattr(Programs, name, record)
    return seen


def compiled(model: Any) -> Any:
    return torch.compile(model, backend="intarsia", options={"strict": True, "toolchains": ["native"]})


def test_weights_are_constants(builds: list[list[str]]) -> None:
    model, x = torch_modules.linear(), torch.randn(2, 8)
    fast = compiled(model)
    fast(x)
    fast(x)
    assert len(builds) == 1
    assert len(builds[0]) == 1


def test_a_weight_that_changes_once_is_a_constant_again(builds: list[list[str]]) -> None:
    model, x = torch_modules.linear(), torch.randn(2, 8)
    fast = compiled(model)
    fast(x)
    model.load_state_dict({name: value * 2 for name, value in model.state_dict().items()})
    torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-5)
    assert [len(names) for names in builds] == [1, 1]


def test_a_weight_that_changes_often_becomes_an_input(builds: list[list[str]]) -> None:
    model, x = torch_modules.linear(), torch.randn(2, 8)
    fast = compiled(model)
    for _ in range(4):
        torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-5)
        model[0].weight.mul_(1.5)
    torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-5)
    assert len(builds) == 3
    assert "0.weight" in builds[-1]
    assert "2.weight" not in builds[-1]


def test_equal_layers_share_a_graph_and_have_weights_of_their_own(builds: list[list[str]]) -> None:
    model, x = torch_modules.Encoder(3).eval(), torch.randn(2, 5, 16)
    expected = model(x)
    for layer in model.layers:
        layer.compile(backend="intarsia", options={"strict": True, "toolchains": ["native"]})
    for _ in range(2):
        torch.testing.assert_close(model(x), expected, rtol=1e-4, atol=1e-5)
    assert len(builds) == 3


def test_too_many_sets_of_weights_are_passed_as_inputs(
    builds: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled_graph, "MAX_VARIANTS", 1)
    model, x = torch_modules.Encoder(3).eval(), torch.randn(2, 5, 16)
    expected = model(x)
    for layer in model.layers:
        layer.compile(backend="intarsia", options={"strict": True, "toolchains": ["native"]})
    with pytest.warns(FallbackWarning, match="1 sets of weights"):
        torch.testing.assert_close(model(x), expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(model(x), expected, rtol=1e-4, atol=1e-5)
    assert [len(names) > 1 for names in builds] == [False, True]
