"""What a user may get wrong: for each an exact message, an exit code, and no traceback."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tests.end_to_end.command_line import Outcome, within

from intarsia.frontend.zoo import build_model

pytestmark = pytest.mark.quick_tests(14, also=["test_messages[truncated file]"])

NPY_HELP = "write --input FILE.npz, --input name=FILE.npy, or --input FILE.npy for a model with one input"


def model(nodes: Sequence[onnx.NodeProto], weights: Sequence[TensorProto] = (), domain: str = "") -> bytes:
    """A model from x to y, both of two floats."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    graph = helper.make_graph(nodes, "graph", [x], [y], list(weights))
    imports = [helper.make_opsetid(name, version) for name, version in {"": 20, domain: 20}.items()]
    made = helper.make_model(graph, opset_imports=imports, ir_version=10)
    return bytes(made.SerializeToString())


def stored_in(location: str) -> bytes:
    """A model whose weight is in another file."""
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2])
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value=location)
    return model([helper.make_node("Add", ["x", "w"], ["y"], name="add")], [weight])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with good and bad files in it."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    mnist = build_model("mnist").SerializeToString()
    cycle = [helper.make_node("Add", ["x", "b"], ["a"], name="first")]
    cycle += [helper.make_node("Relu", ["a"], [out], name=f"to_{out}") for out in ("b", "y")]
    files = {
        "good.onnx": mnist,
        "truncated.onnx": mnist[:9000],
        "text.onnx": b"hello world, not a model",
        "empty.onnx": b"",
        "operator.onnx": model([helper.make_node("Frobnicate", ["x"], ["y"], name="n")]),
        "domain.onnx": model(
            [helper.make_node("Relu", ["x"], ["y"], name="n", domain="com.acme")], domain="com.acme"
        ),
        "cycle.onnx": model(cycle),
        "external.onnx": stored_in("weights.bin"),
        "escape.onnx": stored_in("../secret.bin"),
        "file": b"",
        "zip.intarsia": b"PK\x03\x04 and nothing more",
    }
    for name, content in files.items():
        (here / name).write_bytes(content)
    (tmp_path / "secret.bin").write_bytes(b"\0" * 8)
    np.save("float64.npy", np.zeros((1, 1, 28, 28)))
    np.save("small.npy", np.zeros((1, 1, 28), np.float32))
    return here


RUN = ("run", "good.onnx", "--toolchain", "reference")
CASES = {
    "no such file": (
        ["run", "none.onnx"],
        2,
        "there is no file none.onnx\nhelp: check the path",
    ),
    "unknown pipeline": (
        ["tune", "good.onnx", "--pipeline", "default_tunning", "-q"],
        2,
        "unknown pipeline 'default_tunning'\n"
        "help: did you mean default_tuning or default_tir or default_heuristic?",
    ),
    "unknown pass": (
        ["tune", "good.onnx", "--passes", "TuneLayout,TuneLayouts", "-q"],
        2,
        "unknown pass 'TuneLayouts'\n  TuneLayout,TuneLayouts\n             ^\n"
        "help: did you mean TuneLayout or ConvertLayout or TuneFlags?",
    ),
    "pipeline and passes": (
        ["tune", "good.onnx", "--passes", "none", "--pipeline", "default_tuning", "-q"],
        2,
        "give either a pipeline or passes\nhelp: a pipeline is a sequence of passes",
    ),
    "truncated file": (
        ["tune", "truncated.onnx", "-q"],
        3,
        "the model is truncated: it ends at byte 9000, but a field reaches to byte 25556\n"
        "  in truncated.onnx\nhelp: copy or download the file again",
    ),
    "wrong magic": (
        ["run", "text.onnx"],
        3,
        "not an ONNX model: byte 2 starts no field of a protobuf message\n"
        "  in text.onnx\nhelp: pass an .onnx file, or its bytes",
    ),
    "empty file": (
        ["verify", "empty.onnx"],
        3,
        "the model is empty: it has no bytes\n  in empty.onnx\nhelp: copy or download the file again",
    ),
    "unknown operator": (
        ["run", "operator.onnx"],
        3,
        "unknown operator 'Frobnicate': ONNX opset 20 has no such operator\n  at node 'n'\n"
        "help: check the exporter that wrote the model",
    ),
    "unknown domain": (
        ["run", "domain.onnx"],
        3,
        "node 'n' uses the operator 'Relu' of the domain 'com.acme', which is not one of ONNX's, "
        "and no installed package declares it\n"
        "help: install the package that registers it, or export the model with ONNX's own operators",
    ),
    "cyclic graph": (
        ["run", "cycle.onnx"],
        3,
        "the graph has a cycle: 'first' -> 'to_b' -> 'first'\n"
        "help: an ONNX graph is acyclic: use Loop for repetition",
    ),
    "missing external data": (
        ["run", "external.onnx"],
        3,
        "weight 'w' is stored in 'weights.bin', which does not exist beside the model\n"
        "help: put the file at weights.bin",
    ),
    "path traversal": (
        ["run", "escape.onnx"],
        3,
        "weight 'w' refers to '../secret.bin', which is outside the model's folder; refused\n"
        "help: a model may only read files beside it: re-export it with relative paths",
    ),
    "wrong input name": (
        [*RUN, "--input", "y=small.npy"],
        2,
        'there is no input "y" (--input y=small.npy)\nhelp: the inputs: x',
    ),
    "wrong input dtype": (
        [*RUN, "--input", "float64.npy"],
        2,
        'input "x" has element type float64, expected float32\nhelp: convert it: value.astype("float32")',
    ),
    "wrong input shape": (
        [*RUN, "--input", "small.npy"],
        2,
        'input "x" has shape (1, 1, 28), expected (1, 1, 28, 28)',
    ),
    "input file that is none": (
        [*RUN, "--input", "good.onnx"],
        2,
        f"cannot read the input file good.onnx: it is not a .npy or .npz file\nhelp: {NPY_HELP}",
    ),
    "unknown toolchain": (
        ["run", "good.onnx@referenc"],
        2,
        "unknown toolchain 'referenc'\nhelp: did you mean reference?",
    ),
    "unknown zoo model": (
        ["tune", "zoo:mnits", "-q"],
        2,
        "unknown zoo model 'mnits'\nhelp: did you mean mnist?",
    ),
    "malformed shape": (
        ["tune", "good.onnx", "--shape", "x=1,a"],
        2,
        "--shape 'x=1,a' has the dimension 'a', expected whole numbers of 0 or more\n"
        "help: write name=1,3,224,224 or name:1x3x224x224",
    ),
    "shape of an unknown input": (
        ["run", "good.onnx", "--shape", "z=1"],
        2,
        "the model has no input 'z'\nhelp: its inputs: 'x'",
    ),
    "malformed budget": (
        ["bench", "good.onnx", "--budget", "soon"],
        2,
        'the budget \'soon\' is not a time\nhelp: write seconds, or "90s", "5m", "1h"',
    ),
    "output below a file": (
        ["tune", "good.onnx", "-o", "file/out.intarsia", "-q"],
        2,
        "cannot write file/out.intarsia: not a directory\n"
        "help: a part of the path is a file: choose another folder",
    ),
    "output in a missing folder": (
        ["zoo", "export", "mnist", "-o", "none/m.onnx"],
        2,
        "cannot write none/m.onnx: no such file or directory\nhelp: create the folder first",
    ),
    "output over a device": (
        [*RUN, "--output", "/dev/null"],
        2,
        "cannot write /dev/null: it is not a regular file\nhelp: give the name of a new file",
    ),
    "damaged artifact": (
        ["run", "zip.intarsia"],
        3,
        "zip.intarsia is damaged: the file is cut off: it does not end as a zip does\n"
        "help: copy or download it again, or save it again with Executable.save",
    ),
    "folder that is no artifact": (
        ["bench", "."],
        3,
        ". is no artifact: the folder has no manifest.json\n"
        "help: expected a folder or zip that Executable.save wrote",
    ),
    "tuning an artifact": (
        ["tune", "zip.intarsia"],
        2,
        "zip.intarsia is an artifact or a folder, expected a model\n"
        "help: tune takes an .onnx file or zoo:NAME",
    ),
    "profile by what there is not": (
        ["profile", "good.onnx@reference", "--by", "layer"],
        2,
        "--by layer is no grouping\nhelp: choose one of node, kernel, module, operator",
    ),
    "profile of one program side by side": (
        ["profile", "good.onnx@reference", "--compare"],
        2,
        "--compare takes two programs, but 1 are given\n"
        "help: name two, such as MODEL@native and MODEL@onnxruntime",
    ),
    "trace of two programs": (
        ["profile", "good.onnx@reference", "good.onnx@native", "--trace", "trace.json"],
        2,
        "--trace writes one program\nhelp: name one program, without --compare",
    ),
    "layers of an artifact": (
        ["compare", "good.onnx@reference", "zip.intarsia", "--layers"],
        2,
        "--layers compiles models again, and zip.intarsia is an artifact\n"
        "help: name models, such as MODEL@native and MODEL@onnxruntime",
    ),
    "nothing to compare with": (
        ["compare", "good.onnx@reference"],
        2,
        "compare needs at least two programs, but one is given\n"
        "help: Two or more models (.onnx file or zoo:NAME, each with @TOOLCHAIN if wished) or artifacts.",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_messages(case: str, folder: Path) -> None:
    arguments, code, message = CASES[case]
    before = sorted(folder.iterdir())
    assert within(arguments) == Outcome(code, "", f"error: {message}\n")
    assert sorted(folder.iterdir()) == before  # nothing is left behind


def test_the_same_as_json() -> None:
    outcome = within(["run", "truncated.onnx", "--json"])
    assert outcome.document == {
        "error": "the model is truncated: it ends at byte 9000, but a field reaches to byte 25556",
        "notes": ["in truncated.onnx"],
        "help": "copy or download the file again",
        "exit_code": 3,
    }
    assert outcome.code == 3


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (
            errno.ENOSPC,
            "no space left on device\n"
            "help: free some space or choose another disk, then run the same command again",
        ),
        (errno.EROFS, "read-only file system\nhelp: the file system is read-only: choose another folder"),
        (errno.EACCES, "permission denied\nhelp: choose a folder that you may write to"),
    ],
)
def test_disks_that_refuse(monkeypatch: pytest.MonkeyPatch, folder: Path, number: int, reason: str) -> None:
    import os

    def refuse(self: Path, data: bytes) -> int:
        raise OSError(number, os.strerror(number))

    before = sorted(folder.iterdir())
    monkeypatch.setattr(Path, "write_bytes", refuse)
    assert within(["zoo", "export", "mnist"]) == Outcome(2, "", f"error: cannot write mnist.onnx: {reason}\n")
    assert sorted(folder.iterdir()) == before
