"""torch.compile(model, backend="intarsia"): results, graphs, shapes, aliases, and what is left to PyTorch."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is an extra: pip install 'intarsia[torch]'")
pytest.importorskip("onnxscript", reason="onnxscript comes with the extra torch")

import torch
from tests import torch_modules
from torch import nn

from intarsia.torch_compile import backend
from intarsia.torch_compile.fallback import FallbackWarning

STRICT = {"strict": True, "toolchains": ["native", "onnxruntime"]}


@pytest.fixture(autouse=True)
def inference() -> Any:
    with torch.no_grad():
        yield


def compiled(model: Any, **options: Any) -> Any:
    return torch.compile(model, backend="intarsia", options={**STRICT, **options})


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The graphs that are compiled."""
    seen: list[Any] = []
    compile_one = backend._compile

    def record(graph_module: Any, *args: Any) -> Callable[..., Any]:
        seen.append(graph_module)
        return compile_one(graph_module, *args)

    monkeypatch.setattr(backend, "_compile", record)
    return seen


def test_the_backend_is_registered() -> None:
    assert "intarsia" in torch.compiler.list_backends()


def test_results_equal_those_of_eager_mode(graphs: list[Any]) -> None:
    model, x = torch_modules.Encoder().eval(), torch.randn(2, 5, 16)
    fast = compiled(model)
    for inputs in (x, torch.randn(2, 5, 16)):
        torch.testing.assert_close(fast(inputs), model(inputs), rtol=1e-4, atol=1e-5)
    assert len(graphs) == 1


def test_a_result_is_not_overwritten_by_the_next_call() -> None:
    model = torch_modules.linear()
    fast = compiled(model)
    x = torch.randn(2, 8)
    first = fast(x)
    kept = first.clone()
    fast(torch.randn(2, 8))
    torch.testing.assert_close(first, kept, rtol=0, atol=0)


def test_graph_breaks_make_several_graphs(graphs: list[Any]) -> None:
    model = torch_modules.Branching().eval()
    fast = compiled(model)
    for x in (torch.ones(2, 4), -torch.ones(2, 4)):
        torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-5)
    assert len(graphs) >= 2


def test_dynamic_dimensions_are_compiled_once_more(graphs: list[Any]) -> None:
    model = torch_modules.Encoder(1).eval()
    fast = compiled(model)
    for batch in (2, 3, 4, 7):
        x = torch.randn(batch, 5, 16)
        torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-5)
    assert len(graphs) == 2


def test_marked_dimensions_are_compiled_once(graphs: list[Any]) -> None:
    model = torch_modules.Encoder(1).eval()
    fast = compiled(model)
    for batch in (2, 3):
        x = torch.randn(batch, 5, 16)
        torch._dynamo.mark_dynamic(x, 0)
        torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-5)
    assert len(graphs) == 1


def test_integers_become_inputs_when_they_change(graphs: list[Any]) -> None:
    def scaled(x: Any, factor: int) -> Any:
        return x * factor + 1

    fast = compiled(scaled)
    x = torch.randn(3, 4)
    for factor in (3, 4, 5):
        torch.testing.assert_close(fast(x, factor), scaled(x, factor))
    assert len(graphs) == 2


def test_inputs_need_not_be_contiguous() -> None:
    model = torch_modules.linear()
    fast = compiled(model)
    x = torch.randn(8, 2).t()
    torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-5)
    wide = torch.randn(2, 16)[:, ::2]
    torch.testing.assert_close(fast(wide), model(wide), rtol=1e-4, atol=1e-5)


def test_results_may_be_none_numbers_and_nested() -> None:
    def several(x: Any) -> Any:
        return {"sum": x.sum(), "none": None, "pair": (x * 2, x.shape[0])}

    x = torch.randn(3, 4)
    actual, expected = compiled(several)(x), several(x)
    assert (actual["none"], actual["pair"][1]) == (None, 3)
    torch.testing.assert_close(actual["sum"], expected["sum"])
    torch.testing.assert_close(actual["pair"][0], expected["pair"][0])


def test_a_view_of_an_input_stays_one() -> None:
    def split(x: Any) -> Any:
        return x.view(-1), torch.relu(x)

    x = torch.randn(3, 4)
    flat, _ = compiled(split)(x)
    x[0, 0] = 7
    assert flat[0] == 7


def test_views_of_one_result_share_its_memory() -> None:
    def chunks(x: Any) -> Any:
        return torch.relu(x).chunk(2)

    first, second = compiled(chunks)(torch.randn(4, 4))
    assert first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr()


def test_results_keep_their_order_in_memory() -> None:
    def transposed(x: Any) -> Any:
        return torch.relu(x).t()

    x = torch.randn(3, 4)
    assert compiled(transposed)(x).stride() == transposed(x).stride()
    image = torch.randn(1, 3, 8, 8).to(memory_format=torch.channels_last)
    model = nn.Conv2d(3, 4, 3).eval()
    actual, expected = compiled(model)(image), model(image)
    assert actual.stride() == expected.stride()
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


def test_attention_of_pytorch_needs_its_fast_path_off() -> None:
    model = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    assert "set_fastpath_enabled(False)" in eager_with_warning(model, torch.randn(2, 3, 8))


def test_an_input_that_the_graph_writes_to_is_written() -> None:
    def count(x: Any, total: Any) -> Any:
        total.add_(x.sum())
        return total * 2

    fast, total, expected = compiled(count), torch.zeros(1), torch.zeros(1)
    for _ in range(3):
        x = torch.randn(4)
        torch.testing.assert_close(fast(x, total), count(x, expected))
        torch.testing.assert_close(total, expected)


def test_a_buffer_that_the_graph_writes_to_is_written() -> None:
    model = torch_modules.Counter().eval()
    fast = compiled(model)
    for calls in (1, 2, 3):
        fast(torch.randn(2, 4))
        assert model.calls.item() == calls


def test_a_graph_of_views_only_is_not_compiled(graphs: list[Any]) -> None:
    assert compiled(lambda x: x.t()[:2])(torch.randn(3, 4)).shape == (2, 3)
    assert graphs == []


def test_bfloat16_and_float16_pass_without_conversion() -> None:
    for dtype in (torch.bfloat16, torch.float16):
        model, x = torch_modules.linear().to(dtype), torch.randn(2, 8, dtype=dtype)
        y = compiled(model)(x)
        assert y.dtype == dtype
        torch.testing.assert_close(y, model(x), rtol=0.05, atol=0.05)


def test_inference_mode_is_taken() -> None:
    model, x = torch_modules.linear(), torch.randn(2, 8)
    with torch.inference_mode():
        torch.testing.assert_close(compiled(model)(x), model(x), rtol=1e-4, atol=1e-5)


def eager_with_warning(model: Any, *inputs: Any) -> str:
    """Call a model that is not compiled; return its warning, and see that strict makes an error of it."""
    fast = compiled(model, strict=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fast(*inputs)
        fast(*inputs)
    texts = [str(item.message) for item in caught if issubclass(item.category, FallbackWarning)]
    assert len(texts) == 1, texts
    torch.compiler.reset()
    with pytest.raises(Exception, match="raised") as raised:
        compiled(model)(*inputs)
    problem = texts[0].split("\n")[0].split("eager mode: ")[1]
    assert problem in str(raised.value)
    return texts[0]


def test_gradients_are_left_to_pytorch() -> None:
    model, x = torch_modules.linear(), torch.randn(2, 8)
    with torch.enable_grad():
        text = eager_with_warning(model, x)
        fast = compiled(model, strict=False)
        fast(x).sum().backward()
    assert "gradients are enabled, and 0.weight requires one" in text
    assert "torch.inference_mode()" in text
    assert model[0].weight.grad is not None


def test_training_mode_is_left_to_pytorch() -> None:
    text = eager_with_warning(torch_modules.Regularised().train(), torch.randn(3, 4))
    assert "norm (batch_norm) is in training mode" in text
    assert "model.eval()" in text


def test_random_numbers_are_left_to_pytorch() -> None:
    assert "draws random numbers" in eager_with_warning(lambda x: x + torch.rand(3), torch.randn(3))


def test_an_unsupported_operator_is_left_to_pytorch() -> None:
    text = eager_with_warning(torch_modules.Eigenvalues(), torch.eye(4))
    assert "the operator aten._linalg_eigh.default of module inner" in text


def test_complex_numbers_are_left_to_pytorch() -> None:
    assert "complex64" in eager_with_warning(lambda x: x * 2, torch.randn(3, dtype=torch.complex64))


def test_a_wrong_option_is_an_error() -> None:
    with pytest.raises(Exception, match='has no option "budgett"'):
        torch.compile(nn.ReLU(), backend="intarsia", options={"budgett": 3})(torch.randn(3))
