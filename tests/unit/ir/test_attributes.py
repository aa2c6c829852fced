import pytest
from tests.ir_programs import ones

from intarsia.ir import NO_ATTRS, Attrs

NAN = float("nan")


def test_is_a_mapping_in_the_order_of_names() -> None:
    attrs = Attrs({"b": 1, "a": 2})
    assert list(attrs) == ["a", "b"]
    assert (len(attrs), attrs["b"], attrs.get("c")) == (2, 1, None)
    assert str(attrs) == "Attrs({'a': 2, 'b': 1})"


def test_lists_become_tuples() -> None:
    assert Attrs({"a": [1, [2]]})["a"] == (1, (2,))  # type: ignore[dict-item]  # accepted


def test_is_not_changed_with_what_it_was_made_of() -> None:
    given = {"a": 1}
    attrs = Attrs(given)
    given["a"] = 2
    assert attrs["a"] == 1
    with pytest.raises(TypeError):
        attrs["a"] = 3  # type: ignore[index]  # this is what is tested


@pytest.mark.parametrize(
    ("left", "right"), [(1, 1.0), (1, True), (0.0, -0.0), ("a", b"a"), ((1,), (1.0,)), ((), "")]
)
def test_kinds_of_values_are_told_apart(left: int, right: int) -> None:
    assert Attrs({"a": left}) != Attrs({"a": right})
    assert Attrs({"a": left}).updated(a=right) == Attrs({"a": right})


@pytest.mark.parametrize("value", [1, 1.0, NAN, "a", b"a", (1, (2.0, NAN))])
def test_equal_values_are_equal_and_hash_alike(value: int) -> None:
    left, right = Attrs({"a": value}), Attrs({"a": float("nan") if value is NAN else value})
    assert left == right
    assert hash(left) == hash(right)


def test_constants_are_compared_by_identity() -> None:
    constant = ones()
    assert Attrs({"a": constant}) == Attrs({"a": constant})
    assert Attrs({"a": constant}) != Attrs({"a": ones()})


def test_updated() -> None:
    attrs = Attrs({"a": 1, "b": 2})
    assert dict(attrs.updated(a=3, b=None, c="new")) == {"a": 3, "c": "new"}
    assert dict(attrs) == {"a": 1, "b": 2}
    assert attrs.updated(a=1, c=None) is attrs
    assert NO_ATTRS.updated() is NO_ATTRS
