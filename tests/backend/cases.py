"""ONNX's own backend tests, as files that worker processes can read one by one.

Making them takes onnx several seconds, so it is done once; a worker that starts anew reads what it needs.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
"""Kinds of tests whose models come with the onnx package or are made by it."""

DataSet = tuple[list[Any], list[Any]]


@dataclass(frozen=True, slots=True)
class Case:
    """One backend test.

    Attributes:
        name: Name of the case in onnx.
        model: The serialized model.
        data_sets: Inputs and expected outputs; arrays, lists and None.
        rtol: Allowed difference relative to the expected value.
        atol: Allowed difference beside it.
    """

    name: str
    model: bytes
    data_sets: tuple[DataSet, ...]
    rtol: float
    atol: float


class CaseStore:
    """A folder with one file per case.

    Args:
        folder: Existing folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, cases: Sequence[Case]) -> None:
        """Add cases."""
        for case in cases:
            (self.folder / case.name).write_bytes(pickle.dumps(case))

    def read(self, name: str) -> Case:
        """The case of that name."""
        case = pickle.loads((self.folder / name).read_bytes())
        assert isinstance(case, Case)
        return case


def onnx_cases(kinds: Sequence[str] = KINDS) -> list[Case]:
    """All backend tests that need no download, by kind and name."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tests' own arithmetic overflows on purpose
        return [
            _case(test)
            for kind in kinds
            for test in sorted(load_model_tests(kind=kind), key=lambda test: str(test.name))
        ]


def _case(test: Any) -> Case:
    if test.model is None:
        folder = Path(test.model_dir)
        model = (folder / "model.onnx").read_bytes()
        data_sets = tuple(_data_set(path, model) for path in sorted(folder.glob("test_data_set_*")))
    else:
        model = test.model.SerializeToString()
        data_sets = tuple(
            ([_value(item) for item in inputs], [_value(item) for item in outputs])
            for inputs, outputs in test.data_sets
        )
    return Case(test.name, model, data_sets, test.rtol, test.atol)


def _data_set(folder: Path, model: bytes) -> DataSet:
    import onnx

    graph = onnx.load_from_string(model).graph
    return _files(folder, "input", graph.input), _files(folder, "output", graph.output)


def _files(folder: Path, kind: str, infos: Any) -> list[Any]:
    paths = [folder / f"{kind}_{number}.pb" for number in range(len(list(folder.glob(f"{kind}_*.pb"))))]
    return [_file_value(path, info.type) for path, info in zip(paths, infos, strict=False)]


def _file_value(path: Path, type_: Any) -> Any:
    from onnx import OptionalProto, SequenceProto, TensorProto

    kinds = {"sequence_type": SequenceProto, "optional_type": OptionalProto}
    message = kinds.get(type_.WhichOneof("value"), TensorProto)()
    message.ParseFromString(path.read_bytes())
    return _value(message)


def _value(item: Any) -> Any:
    """A value of a test as the engines take it."""
    from onnx import OptionalProto, SequenceProto, TensorProto, numpy_helper

    match item:
        case TensorProto():
            return numpy_helper.to_array(item)
        case SequenceProto():
            return numpy_helper.to_list(item)
        case OptionalProto():
            return numpy_helper.to_optional(item)
        case _:
            return item
