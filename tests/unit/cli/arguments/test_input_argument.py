from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from intarsia.cli.arguments.input import read_inputs
from intarsia.runtime.plan import TensorInfo
from intarsia.support.errors import InputError

X = TensorInfo("x", "float32", (2,))
MASK = TensorInfo("mask", "int64", (2,))
HOW = "help: write --input FILE.npz, --input name=FILE.npy, or --input FILE.npy for a model with one input"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.array([1, 2], np.float32))
    np.savez("both.npz", x=np.array([3, 4], np.float32), mask=np.array([5, 6]))
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("texts", "infos", "expected"),
    [
        (["x.npy"], [X], {"x": [1, 2]}),
        (["x=x.npy"], [X, MASK], {"x": [1, 2]}),
        (["both.npz"], [X, MASK], {"x": [3, 4], "mask": [5, 6]}),
        ([], [X], {}),
    ],
)
def test_forms(texts: list[str], infos: list[TensorInfo], expected: dict[str, list[int]]) -> None:
    found = read_inputs(texts, infos)
    assert {name: array.tolist() for name, array in found.items()} == expected


@pytest.mark.usefixtures("folder")
def test_a_file_may_have_an_equals_sign_in_its_name() -> None:
    np.save("a=b.npy", np.array([7, 8], np.float32))
    assert read_inputs(["a=b.npy"], [X])["x"].tolist() == [7, 8]


@pytest.mark.usefixtures("folder")
def test_element_types_that_npy_does_not_know() -> None:
    array: Any = np.array([1, -0.5], ml_dtypes.bfloat16)
    np.save("half.npy", array)
    found = read_inputs(["half.npy"], [TensorInfo("x", "bfloat16", (2,))])["x"]
    assert found.dtype == ml_dtypes.bfloat16
    assert found.astype(np.float32).tolist() == [1, -0.5]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("texts", "infos", "message"),
    [
        (["z=x.npy"], [X, MASK], 'there is no input "z" (--input z=x.npy)\nhelp: the inputs: x, mask'),
        (["both.npz"], [X], 'there is no input "mask" (--input both.npz)\nhelp: the inputs: x'),
        (["x.npy", "x=x.npy"], [X], 'input "x" is given twice (--input x=x.npy)'),
        (
            ["x.npy"],
            [X, MASK],
            f"x.npy holds one array, but the model has 2 inputs: x, mask\n{HOW}",
        ),
        (["x.npy"], [], f"x.npy holds one array, but the model has 0 inputs: none\n{HOW}"),
        (
            ["x=both.npz"],
            [X],
            f'both.npz holds arrays by name, expected one array for input "x"\n{HOW}',
        ),
        (["none.npy"], [X], f"cannot read the input file none.npy: no such file or directory\n{HOW}"),
        (["."], [X], f"cannot read the input file .: is a directory\n{HOW}"),
    ],
)
def test_wrong_ones(texts: list[str], infos: list[TensorInfo], message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_inputs(texts, infos)
    assert str(caught.value) == message


def damaged(path: Path, keep: int) -> str:
    path.write_bytes(path.read_bytes()[:keep])
    return path.name


def test_damaged_files(folder: Path) -> None:
    objects: Any = np.array([{}], dtype=object)
    np.save("objects.npy", objects, allow_pickle=True)
    (folder / "text.npy").write_text("1 2 3")
    cases = {
        "objects.npy": "it holds Python objects, which are not read",
        "text.npy": "it is not a .npy or .npz file",
        damaged(folder / "x.npy", 130): "it is damaged",
        damaged(folder / "both.npz", 100): "it is damaged",
    }
    for name, reason in cases.items():
        with pytest.raises(InputError) as caught:
            read_inputs([name], [X])
        assert str(caught.value) == f"cannot read the input file {name}: {reason}\n{HOW}"
