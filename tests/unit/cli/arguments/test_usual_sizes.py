import numpy as np
import pytest

from intarsia.cli.arguments.usual_sizes import with_usual_sizes
from intarsia.ir import ANY, DType, Function, GlobalVar, IRModule, SymbolicDim, TensorType, Tuple, Var
from intarsia.support.errors import UsageError

BATCH, PIXELS = SymbolicDim("batch"), SymbolicDim("pixels")


def program() -> IRModule:
    """A program with parameters a (batch, pixels) and b (batch, unknown)."""
    shapes = {"a": (BATCH, PIXELS), "b": (BATCH, ANY)}
    params = (Var(name, checked_type=TensorType(shape, DType.FLOAT32)) for name, shape in shapes.items())
    return IRModule({GlobalVar("main"): Function(tuple(params), Tuple(()))})


def shapes_with(given: dict[str, np.ndarray], shapes: dict[str, tuple[int, ...]]) -> tuple[object, list[str]]:
    notes: list[str] = []
    main = with_usual_sizes(program(), given, shapes, notes.append)
    types = [param.checked_type for param in main.params]
    return [type_.shape for type_ in types if isinstance(type_, TensorType)], notes


def test_usual_sizes_are_named() -> None:
    shapes, notes = shapes_with({}, {})
    assert shapes == [(4, 11), (4, 11)]
    assert notes == ["no --shape: batch=4, pixels=11, b[1]=11"]


def test_given_sizes_come_first() -> None:
    assert shapes_with({}, {"b": (3, 5)}) == ([(3, 11), (3, 5)], ["no --shape: pixels=11"])
    assert shapes_with({}, {"pixels": (7,)}) == ([(4, 7), (4, 11)], ["no --shape: batch=4, b[1]=11"])
    a = np.zeros((2, 6), np.float32)
    assert shapes_with({"a": a}, {"b": (2, 9)}) == ([(2, 6), (2, 9)], [])


def test_sizes_that_contradict_each_other() -> None:
    with pytest.raises(UsageError, match="the inputs have batch=2 and batch=3"):
        shapes_with({"a": np.zeros((2, 6), np.float32)}, {"b": (3, 5)})
    with pytest.raises(UsageError, match="there is no input 'z'"):
        shapes_with({}, {"z": (1,)})
