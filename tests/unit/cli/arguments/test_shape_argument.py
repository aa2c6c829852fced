import pytest
from hypothesis import given
from hypothesis import strategies as st

from intarsia.cli.arguments.shape import parse_shape, parse_shape_words, parse_shapes
from intarsia.measure.sizes import DimSizes
from intarsia.support.errors import UsageError

HOW = "help: write name=1,3,224,224 or name:1x3x224x224"


@pytest.mark.parametrize(
    ("text", "name", "shape"),
    [
        ("x=1,3,224,224", "x", (1, 3, 224, 224)),
        ("x:1x3x224x224", "x", (1, 3, 224, 224)),
        ("x=1x3x224x224", "x", (1, 3, 224, 224)),
        ("input:0=7x3", "input:0", (7, 3)),
        ("x=7", "x", (7,)),
        ("x:7", "x", (7,)),
        ("x=0,3", "x", (0, 3)),
        (" x = 1, 3 ", "x", (1, 3)),
        ("input:0=1,3", "input:0", (1, 3)),
        ("input:0:1x3", "input:0", (1, 3)),
        ("a=b=1", "a=b", (1,)),
        ("boxes/x:2x2", "boxes/x", (2, 2)),
    ],
)
def test_both_forms(text: str, name: str, shape: tuple[int, ...]) -> None:
    assert parse_shape(text) == (name, shape)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x", "--shape 'x' has no name with a shape"),
        ("=1,3", "--shape '=1,3' has no name with a shape"),
        ("1,3,224", "--shape '1,3,224' has no name with a shape"),
        ("x=1,a", "--shape 'x=1,a' has the dimension 'a', expected whole numbers of 0 or more"),
        ("x=1,-3", "--shape 'x=1,-3' has the dimension '-3', expected whole numbers of 0 or more"),
        ("x=1,,3", "--shape 'x=1,,3' has an empty dimension, expected whole numbers of 0 or more"),
        ("x=", "--shape 'x=' has an empty dimension, expected whole numbers of 0 or more"),
        ("x=1xx3", "--shape 'x=1xx3' has the dimension '1xx3', expected whole numbers of 0 or more"),
        ("x:1,3", "--shape 'x:1,3' has the dimension '1,3', expected whole numbers of 0 or more"),
        ("x=1.5", "--shape 'x=1.5' has the dimension '1.5', expected whole numbers of 0 or more"),
        ("x=²", "--shape 'x=²' has the dimension '²', expected whole numbers of 0 or more"),
    ],
)
def test_malformed(text: str, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_shape(text)
    assert str(caught.value) == f"{problem}\n{HOW}"


def test_several_inputs() -> None:
    assert parse_shapes(["a=1", "b:2x3"]) == {"a": (1,), "b": (2, 3)}


def test_an_input_given_twice() -> None:
    with pytest.raises(UsageError, match=r"^--shape gives a shape for 'a' twice$"):
        parse_shapes(["a=1", "a:2"])


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="=:"), min_size=1).filter(
    lambda name: name == name.strip()
)


@given(NAMES, st.lists(st.integers(0, 10**6), min_size=1, max_size=6))
def test_whatever_is_written_is_read_back(name: str, dims: list[int]) -> None:
    assert parse_shape(f"{name}={','.join(map(str, dims))}") == (name, tuple(dims))
    assert parse_shape(f"{name}:{'x'.join(map(str, dims))}") == (name, tuple(dims))


def test_shapes_and_sizes_together() -> None:
    words = parse_shape_words(
        ["x=1,3", "batch=1..8,seq=1..512@log", "n=16:0.5,128:0.5", "rows[0]=1..4", "k=8"]
    )
    assert words.shapes == {"x": (1, 3), "k": (8,)}
    assert words.dims == {
        "batch": DimSizes.read("batch", (1, 8)),
        "seq": DimSizes.read("seq", "1..512@log"),
        "n": DimSizes.read("n", {16: 1, 128: 1}),
        "rows[0]": DimSizes.read("rows[0]", (1, 4)),
    }


def test_several_single_sizes_in_one_text() -> None:
    expected = {"batch": (8,), "seq": (128,), "x:0": (1, 3)}
    assert parse_shapes(["batch=8, seq=128", "x:0=1,3"]) == expected
    words = parse_shape_words(["x:0=1,3,batch=8,seq=128"])
    assert (words.shapes, words.dims) == (expected, {})
    assert parse_shapes(["a,b=8"]) == {"a,b": (8,)}
    with pytest.raises(UsageError, match="twice"):
        parse_shapes(["batch=8,batch=1"])


def test_single_sizes_beside_others() -> None:
    assert parse_shape_words(["batch=8,seq=1..4"]).dims["batch"] == DimSizes.read("batch", "8")


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        (["batch=1..8", "batch=1..4"], "--shape gives sizes for 'batch' twice"),
        (["=1..8"], "--shape '=1..8' has sizes without a name"),
        (["batch=8..1"], "dimension 'batch' is to be 8 to 1: there is no such size"),
        (["batch=1..x"], "dimension 'batch' has the sizes '1..x'"),
    ],
)
def test_sizes_that_are_refused(texts: list[str], problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_shape_words(texts)
    assert caught.value.problem == problem
