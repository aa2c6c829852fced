"""What `tune` is given, as a program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest

from intarsia.driver.import_model import given_name, import_model
from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model
from intarsia.ir import DType, Function, IRModule, TensorType, Var, structural_equal
from intarsia.op import call
from intarsia.support.errors import UsageError


def relu() -> IRModule:
    x = Var("x", checked_type=TensorType((2, 3), DType.FLOAT32))
    return IRModule.from_expr(Function((x,), call("Relu", x)))


def test_a_program_stays_as_it_is() -> None:
    module = relu()
    assert import_model(module, None, None, None, None).module is module


@pytest.mark.parametrize("given", [{"example_inputs": ()}, {"dynamic_shapes": {}}])
def test_arguments_for_pytorch_need_a_model_of_pytorch(given: dict[str, Any]) -> None:
    arguments = {"example_inputs": None, "dynamic_shapes": None, **given}
    with pytest.raises(UsageError, match="are for models of PyTorch"):
        import_model(relu(), None, None, **arguments)


def test_example_inputs_are_measured_on() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxscript")
    x = torch.randn(2, 4)
    model = import_model(torch.nn.Linear(4, 3), None, None, x, None)
    assert [array.tolist() for array in model.inputs.values()] == [x.tolist()]
    with pytest.raises(UsageError, match="has the shapes of its example inputs"):
        import_model(torch.nn.Linear(4, 3), {"x": (1, 4)}, None, x, None)


def test_a_model_of_the_zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    module = import_model("zoo:mnist", None, None, None, None).module
    assert structural_equal(module, from_onnx(build_model("mnist")))
    with pytest.raises(UsageError, match="unknown zoo model 'minst'") as caught:
        import_model("zoo:minst", None, None, None, None)
    assert caught.value.help == "did you mean mnist?"
    onnx.save(build_model("lstm"), tmp_path / "zoo:mnist")  # a file of that name is that file
    assert not structural_equal(import_model("zoo:mnist", None, None, None, None).module, module)


@pytest.mark.parametrize(
    ("model", "name"),
    [("nets/pose.onnx", "pose"), (Path("pose.v2.onnx"), "pose.v2"), ("zoo:mnist", "mnist"), (b"...", "")],
)
def test_the_name_of_a_model_is_that_of_its_file(model: object, name: str) -> None:
    assert given_name(model) == name
