import pytest

from intarsia.op.attribute_check import check_attribute_values
from intarsia.support.errors import InvalidModelError


@pytest.mark.parametrize(
    ("operator", "attrs"),
    [
        ("Softmax", {"axis": -1}),
        ("GatherND", {"batch_dims": 2}),
        ("Einsum", {"equation": "...ij, jk -> ...ik"}),
        ("Einsum", {"equation": "i->"}),
        ("Custom", {"equation": "?"}),
    ],
)
def test_ordinary_values(operator: str, attrs: dict[str, object]) -> None:
    check_attribute_values(operator, attrs)


@pytest.mark.parametrize(
    ("operator", "attrs", "message"),
    [
        ("Softmax", {"axis": 2**62}, f"operator 'Softmax' has axis={2**62}, which no tensor has"),
        ("GatherND", {"batch_dims": -1}, "operator 'GatherND' has batch_dims=-1, which no tensor has"),
        (
            "Einsum",
            {"equation": "%>"},
            "operator 'Einsum' has the equation '%>', expected one such as 'ij,jk->ik'",
        ),
        (
            "Einsum",
            {"equation": 3},
            "operator 'Einsum' has the equation 3, expected one such as 'ij,jk->ik'",
        ),
    ],
)
def test_values_that_onnx_cannot_be_asked_about(
    operator: str, attrs: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidModelError) as caught:
        check_attribute_values(operator, attrs)
    assert caught.value.problem == message
