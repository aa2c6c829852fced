"""What a user reads when a toolchain is missing, broken, or refuses."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from intarsia.runtime.kernel import TOOLCHAINS, Array, KernelSource
from intarsia.support.errors import CompileError, ExecutionError, MissingToolchainError
from intarsia.toolchain import Unavailable, installed_toolchains, targets, toolchain, usable_toolchains

ONE = helper.make_tensor_value_info("x", 1, ["n"])
TWO = helper.make_tensor_value_info("z", 1, ["m"])
RESULT = helper.make_tensor_value_info("y", 1, None)


def add_entry_point(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    points = {point: TOOLCHAINS._points()[point] for point in ("onnxruntime", "openvino", "reference")}
    points[name] = EntryPoint(name, value, "intarsia.toolchains")
    monkeypatch.setattr(TOOLCHAINS, "_entry_points", points)


def broken_package(monkeypatch: pytest.MonkeyPatch, folder: Path, name: str, text: str) -> None:
    """Let `import name` run `text` instead of the package."""
    (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setitem(sys.modules, name, sys)  # so that the end of the test removes what is imported in it
    for module in [known for known in sys.modules if known.partition(".")[0] == name]:
        monkeypatch.delitem(sys.modules, module)


def reason_of(name: str) -> str:
    (found,) = (status for status in installed_toolchains() if status.name == name)
    assert isinstance(found.availability, Unavailable)
    assert not found.is_usable
    assert all(usable.name != name for usable in usable_toolchains())
    assert all(target.toolchain != name for target in targets())
    return found.availability.reason


def test_unknown_toolchain() -> None:
    with pytest.raises(MissingToolchainError) as raised:
        toolchain("openvin")
    assert str(raised.value) == "unknown toolchain 'openvin'\nhelp: did you mean openvino?"


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_package_not_installed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", [path for path in sys.path if "site-packages" not in path])
    monkeypatch.setattr("sys.path_importer_cache", {})
    monkeypatch.setattr(
        "sys.meta_path", [finder for finder in sys.meta_path if "editable" not in repr(finder)]
    )
    for module in [known for known in sys.modules if known.partition(".")[0] == name]:
        monkeypatch.delitem(sys.modules, module)
    with pytest.raises(MissingToolchainError) as raised:
        toolchain(name)
    assert str(raised.value) == (
        f"toolchain '{name}' is not usable here: the package {name} is not installed\n"
        f"help: pip install 'intarsia[{name}]'"
    )
    assert reason_of(name) == f"the package {name} is not installed"


def test_package_whose_import_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = "raise ImportError('libtbb.so.12: cannot open\\n shared object file')"
    broken_package(monkeypatch, tmp_path, "openvino", text)
    with pytest.raises(MissingToolchainError) as raised:
        toolchain("openvino")
    assert str(raised.value) == (
        "toolchain 'openvino' is not usable here: importing openvino failed with "
        "ImportError: libtbb.so.12: cannot open shared object file\n"
        "help: repair it: pip install 'intarsia[openvino]' --force-reinstall"
    )


def test_package_that_lacks_a_dependency(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken_package(monkeypatch, tmp_path, "onnxruntime", "import no_such_dependency")
    assert reason_of("onnxruntime") == (
        "importing onnxruntime failed with ModuleNotFoundError: No module named 'no_such_dependency'"
    )


def test_package_of_which_only_a_folder_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken_package(monkeypatch, tmp_path, "onnxruntime", "")
    assert reason_of("onnxruntime") == "the package onnxruntime is incomplete: it has no version"


@pytest.mark.parametrize(
    ("entry_point", "reason"),
    [
        (
            "no_such_package:Toolchain",
            "loading it failed with ModuleNotFoundError: No module named 'no_such_package'",
        ),
        (
            "math:Toolchain",
            "loading it failed with AttributeError: module 'math' has no attribute 'Toolchain'",
        ),
        ("math:pi", "loading it failed with TypeError: 'float' object is not callable"),
        (
            "builtins:dict",
            "loading it failed with AttributeError: 'dict' object has no attribute 'availability'",
        ),
    ],
)
def test_broken_entry_point(monkeypatch: pytest.MonkeyPatch, entry_point: str, reason: str) -> None:
    add_entry_point(monkeypatch, "broken", entry_point)
    monkeypatch.setattr(TOOLCHAINS, "_values", {})
    assert reason_of("broken") == reason
    with pytest.raises(MissingToolchainError) as raised:
        toolchain("broken")
    assert str(raised.value) == f"toolchain 'broken' is not usable here: {reason}"
    assert {status.name for status in installed_toolchains()} == {
        "broken",
        "onnxruntime",
        "openvino",
        "reference",
    }


def source(name: str, nodes: list[NodeProto], inputs: list[ValueInfoProto]) -> KernelSource:
    graph = helper.make_graph(nodes, "main", inputs, [RESULT])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 26)], ir_version=13)
    return KernelSource(name, f"cpu -toolchain={name}", model.SerializeToString())


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("onnxruntime", "No Op registered for Foo with domain_version of 26"),
        ("openvino", "No conversion rule found for operations: Foo-26"),
        (
            "reference",
            """NotImplementedError: No registered schema for operator 'Foo' and domain ''. \
Did you recompile the sources after updating the repository?""",
        ),
    ],
)
def test_unknown_operator(name: str, problem: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CompileError) as raised:
        toolchain(name).load(source(name, [helper.make_node("Foo", ["x"], ["y"])], [ONE]))
    assert raised.value.problem == f"{name} cannot compile this: {problem}"
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("onnxruntime", "Add: Attempting to broadcast an axis by a dimension other than 1. 3 by 4"),
        ("openvino", "Add node with name 'y': Eltwise shape infer input shapes dim index: 0 mismatch"),
        (
            "reference",
            """TypeError: Issues with types <class 'numpy.ndarray'>, <class 'numpy.ndarray'> \
(binary operator 'Add').""",
        ),
    ],
)
def test_shapes_that_do_not_fit(
    name: str, problem: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("intarsia.toolchain.openvino.model.usable_cores", lambda root: 2)
    kernel = toolchain(name).load(source(name, [helper.make_node("Add", ["x", "z"], ["y"])], [ONE, TWO]))
    three, four = np.ones(3, np.float32), np.ones(4, np.float32)
    with pytest.raises(ExecutionError) as raised:
        kernel.run([three, four], [None])
    assert str(raised.value) == f"{name} failed: {problem}"
    (found,) = kernel.run([four, four], [None])
    assert isinstance(found, np.ndarray)
    assert found.tolist() == [2, 2, 2, 2]  # a failure spoils nothing
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["onnxruntime", "openvino", "reference"])
def test_source_that_is_no_model(name: str) -> None:
    with pytest.raises(CompileError) as raised:
        toolchain(name).load(KernelSource(name, f"cpu -toolchain={name}", b"\xff\xff"))
    assert str(raised.value) == f"{name} cannot compile this: the source is no ONNX model"


def test_openvino_refuses_unknown_shapes_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("intarsia.toolchain.openvino.model.usable_cores", lambda root: 1)
    with pytest.raises(CompileError) as raised:
        toolchain("openvino").load(source("openvino", [helper.make_node("Neg", ["x"], ["y"])], [ONE]))
    assert str(raised.value) == (
        "openvino cannot compile this: on one thread, shapes known only at run time are unsafe\n"
        "help: fix the shapes of the model, or allow two threads"
    )


def test_openvino_cannot_switch_optimisations_off() -> None:
    model = source("openvino", [helper.make_node("Neg", ["x"], ["y"])], [ONE]).model
    with pytest.raises(CompileError) as raised:
        toolchain("openvino").load(KernelSource("openvino", "cpu -toolchain=openvino -optimize=0", model))
    assert str(raised.value) == ("openvino cannot switch its optimisations off\nhelp: leave out -optimize=0")


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
@pytest.mark.parametrize(
    ("array", "found"),
    [(np.ones(3), "float64 array"), (np.ones((3, 2), np.float32)[:, 0], "float32 array")],
)
def test_input_that_cannot_be_bound(
    name: str, array: Array, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("intarsia.toolchain.openvino.model.usable_cores", lambda root: 2)
    kernel = toolchain(name).load(source(name, [helper.make_node("Neg", ["x"], ["y"])], [ONE]))
    with pytest.raises(ExecutionError) as raised:
        kernel.run([array], [None])
    assert str(raised.value) == f"'x' needs a contiguous float32 array, found {found}"


MEMORY = np.ones(3, np.float32)


def stray_tensor() -> TensorProto:
    """A tensor whose data would be read from the memory of this process."""
    tensor = TensorProto(name="stray", data_type=1, dims=[3], data_location=TensorProto.EXTERNAL)
    memory = "*/_ORT_MEM_ADDR_/*"
    for key, value in (("location", memory), ("offset", str(MEMORY.ctypes.data)), ("length", "12")):
        tensor.external_data.add(key=key, value=value)
    return tensor


def stray_model(place: str) -> ModelProto:
    """An input plus a tensor outside of the model, which stands in one of the places where it may not."""
    nodes = [helper.make_node("Add", ["x", "stray"], ["y"])]
    constant = helper.make_node("Constant", [], ["stray"], value=stray_tensor())
    graph = helper.make_graph(nodes, "main", [ONE], [RESULT])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 26)], ir_version=13)
    match place:
        case "attribute":
            model.graph.node.insert(0, constant)
        case "branch":
            inner = helper.make_graph(
                [constant], "inner", [], [helper.make_tensor_value_info("stray", 1, [3])]
            )
            model.graph.node.insert(
                0, helper.make_node("If", ["x"], ["stray"], then_branch=inner, else_branch=inner)
            )
        case "function":
            own = [helper.make_opsetid("", 26)]
            model.functions.append(helper.make_function("my", "F", [], ["stray"], [constant], own))
            model.graph.node.insert(0, helper.make_node("F", [], ["stray"], domain="my"))
        case _:
            model.graph.sparse_initializer.add(dims=[3]).values.CopyFrom(stray_tensor())
    return model


@pytest.mark.parametrize("place", ["attribute", "branch", "function", "sparse initializer"])
@pytest.mark.parametrize("name", ["onnxruntime", "openvino", "reference"])
def test_external_tensor_that_is_no_initializer(name: str, place: str) -> None:
    model = stray_model(place).SerializeToString()
    with pytest.raises(CompileError) as raised:
        toolchain(name).load(KernelSource(name, f"cpu -toolchain={name}", model))
    assert str(raised.value) == (
        f"{name} cannot compile this: the tensor 'stray' is stored outside the model, which only an "
        "initializer may be\nhelp: store it in the model"
    )
