import numpy as np
import pytest

from intarsia.cli.arguments.random_rest import with_random_rest
from intarsia.ir import Constant, DType, Function, SymbolicDim, TensorType, Tuple, Var
from intarsia.op import call
from intarsia.support.errors import UsageError

BATCH = SymbolicDim("batch")


def main() -> Function:
    """Parameters a (batch, 3), b (batch,) and c (2,)."""
    shapes = {"a": (BATCH, 3), "b": (BATCH,), "c": (2,)}
    params = (Var(name, checked_type=TensorType(shape, DType.FLOAT32)) for name, shape in shapes.items())
    return Function(tuple(params), Tuple(()))


def test_a_given_array_fixes_the_size_of_the_others() -> None:
    notes: list[str] = []
    a = np.ones((5, 3), np.float32)
    found = with_random_rest(main(), {"a": a}, {}, 7, notes.append)
    assert found["a"] is a
    assert {name: array.shape for name, array in found.items()} == {"a": (5, 3), "b": (5,), "c": (2,)}
    assert notes == ["no --input for b, c: random numbers (seed 7)"]


def test_a_given_shape_does_so_too() -> None:
    notes: list[str] = []
    found = with_random_rest(main(), {}, {"b": (4,)}, 0, notes.append)
    assert {name: array.shape for name, array in found.items()} == {"a": (4, 3), "b": (4,), "c": (2,)}
    assert notes == []
    again = with_random_rest(main(), {}, {"b": (4,)}, 0, notes.append)
    other = with_random_rest(main(), {}, {"b": (4,)}, 1, notes.append)
    assert np.array_equal(found["a"], again["a"])
    assert not np.array_equal(found["a"], other["a"])


def test_everything_given() -> None:
    arrays = {"a": np.ones((1, 3)), "b": np.ones(1), "c": np.ones(2)}
    assert with_random_rest(main(), arrays, {}, 0, pytest.fail) == arrays


def test_open_shapes() -> None:
    with pytest.raises(UsageError) as caught:
        with_random_rest(main(), {}, {}, 0, pytest.fail)
    assert caught.value.problem == (
        "input 'a' has the symbolic shape Tensor[(batch, 3), float32], "
        "'b' has the symbolic shape Tensor[(batch,), float32]"
    )
    assert caught.value.help == "fix it: --shape a=1,3 --shape b=1"


def test_shapes_of_the_self_test_stand_in_for_open_ones() -> None:
    notes: list[str] = []
    arrays = with_random_rest(main(), {}, {}, 0, notes.append, {"a": (5, 3), "b": (5,), "c": (2,)})
    assert {name: array.shape for name, array in arrays.items()} == {"a": (5, 3), "b": (5,), "c": (2,)}
    assert notes == ["random inputs have the sizes of the self test: --shape a=5,3 --shape b=5"]


def test_shapes_of_the_self_test_are_a_hint_beside_given_ones() -> None:
    with pytest.raises(UsageError) as caught:
        with_random_rest(main(), {}, {"c": (2,)}, 0, pytest.fail, {"a": (5, 3), "b": (5,)})
    assert caught.value.help == "fix it: --shape a=5,3 --shape b=5"


def test_a_shape_for_an_unknown_input() -> None:
    with pytest.raises(UsageError) as caught:
        with_random_rest(main(), {}, {"z": (1,)}, 0, pytest.fail)
    assert str(caught.value) == (
        "there is no input 'z'\nhelp: the inputs: a, b, c; its symbolic dimensions: batch"
    )


def test_a_size_for_a_dimension_by_name() -> None:
    arrays = with_random_rest(main(), {}, {"batch": (5,), "c": (2,)}, 0, pytest.fail)
    assert {name: array.shape for name, array in arrays.items()} == {"a": (5, 3), "b": (5,), "c": (2,)}
    with pytest.raises(UsageError, match="there is no input 'batch'"):
        with_random_rest(main(), {}, {"batch": (5, 3)}, 0, pytest.fail)


def test_integers_follow_their_use_in_the_program() -> None:
    ids = Var("ids", checked_type=TensorType((BATCH,), DType.INT64))
    masked = call("Gather", Constant(np.ones((4, 3), np.float32)), call("Sub", ids, Constant(np.array(100))))
    found = with_random_rest(Function((ids,), masked), {}, {"ids": (200,)}, 0, pytest.fail)
    assert set(found["ids"].tolist()) == {100, 101, 102, 103}


def test_a_random_length_is_within_the_axis_of_a_given_array() -> None:
    x = Var("x", checked_type=TensorType((SymbolicDim("steps"), BATCH), DType.FLOAT32))
    lengths = Var("lengths", checked_type=TensorType((BATCH,), DType.INT64))
    main = Function((x, lengths), call("ReverseSequence", x, lengths, time_axis=0, batch_axis=1))
    arrays = with_random_rest(main, {"x": np.ones((2, 40), np.float32)}, {}, 0, lambda note: None)
    assert set(arrays["lengths"].tolist()) == {1, 2}
