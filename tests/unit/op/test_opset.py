import pytest

from intarsia.op.opset import (
    OPSETS,
    PINNED_OPSET,
    has_variadic_output,
    newest_schema,
    schema_at,
    schema_of,
    unknown_operator,
)
from intarsia.support.errors import InvalidModelError, UnsupportedModelError


def test_the_schema_is_that_of_the_pinned_opset() -> None:
    assert schema_of("Conv").since_version <= PINNED_OPSET
    assert schema_of("Relu").name == "Relu"
    assert OPSETS[""] == PINNED_OPSET


@pytest.mark.parametrize(
    ("name", "help_"),
    [
        ("MatMull", "did you mean MatMul?"),
        ("LayerNorm", "did you mean LayerNormalization?"),
        ("Frobnicate", "check the exporter that wrote the model"),
        ("Xyz", "check the exporter that wrote the model"),
    ],
)
def test_only_names_in_similar_spelling_are_suggested(name: str, help_: str) -> None:
    assert unknown_operator(name, "", 17).help == help_


def test_unknown_operator_names_the_nearest() -> None:
    with pytest.raises(InvalidModelError, match="unknown operator 'Convv': ONNX opset 26") as caught:
        schema_of("Convv")
    assert caught.value.help == "did you mean Conv?"


def test_unknown_domain_lists_the_known_ones() -> None:
    with pytest.raises(UnsupportedModelError, match="belongs to the domain 'acme'") as caught:
        schema_of("Relu", "acme")
    assert "'ai.onnx.ml'" in caught.value.help


def test_a_deprecated_operator_is_not_there() -> None:
    assert schema_at("Upsample", 9) is not None
    assert schema_at("Upsample", 10) is None
    assert schema_at("TreeEnsembleRegressor", 5, "ai.onnx.ml") is not None


def test_an_operator_of_another_version() -> None:
    error = unknown_operator("Gelu", "", 17)
    assert error.problem == "unknown operator 'Gelu': ONNX opset 17 has no such operator"
    assert error.help == "Gelu belongs to version 20 and newer of the opset"


def test_an_operator_of_another_domain() -> None:
    error = unknown_operator("Scalr", "ai.onnx.ml")
    assert error.problem == (
        "unknown operator 'Scalr': version 5 of the domain 'ai.onnx.ml' has no such operator"
    )
    assert error.help == "did you mean Scaler?"


def test_the_newest_schema_may_be_newer_than_the_pinned_one() -> None:
    assert newest_schema("Relu").since_version >= schema_of("Relu").since_version


@pytest.mark.parametrize(
    ("name", "variadic"), [("Split", True), ("Loop", True), ("TopK", False), ("Relu", False)]
)
def test_variadic_outputs(name: str, variadic: bool) -> None:
    assert has_variadic_output(name, "") is variadic


def test_operators_of_our_domain_have_one_result() -> None:
    assert not has_variadic_output("device_copy", "intarsia")
