from typing import Any

import numpy as np
import pytest
from onnx import AttributeProto, TensorProto, TypeProto, helper, numpy_helper
from tests.each_case import each_case

from intarsia.ir import (
    ANY,
    Attrs,
    AttrValue,
    Constant,
    DType,
    FuncType,
    OptionalType,
    SequenceType,
    SymbolicDim,
    TensorType,
    TupleType,
    Type,
)
from intarsia.op.attribute_protos import attribute_to_proto
from intarsia.op.onnx_types import (
    attributes_from_protos,
    densify,
    dtype_of_elem,
    elem_type_of,
    tensor_from_proto,
    tensor_to_proto,
    type_from_proto,
    type_to_proto,
)
from intarsia.support.errors import InvalidModelError, UnsupportedModelError

F32 = TensorType((2, SymbolicDim("N"), ANY), DType.FLOAT32)


@each_case("dtype", list(DType))
def test_every_element_type_has_a_number_in_onnx(dtype: DType) -> None:
    assert dtype_of_elem(elem_type_of(dtype)) is dtype


def test_unknown_element_type() -> None:
    with pytest.raises(InvalidModelError, match="unknown ONNX element type 0"):
        dtype_of_elem(TensorProto.UNDEFINED)


@pytest.mark.parametrize(
    "type_",
    [
        F32,
        TensorType((), DType.INT64),
        TensorType(None, DType.STRING),
        SequenceType(F32),
        OptionalType(SequenceType(F32)),
    ],
)
def test_types_there_and_back(type_: Type) -> None:
    assert type_from_proto(type_to_proto(type_)) == type_


@pytest.mark.parametrize("type_", [TupleType((F32,)), FuncType((), F32)])
def test_types_that_onnx_lacks(type_: Type) -> None:
    with pytest.raises(UnsupportedModelError, match="ONNX has no type for"):
        type_to_proto(type_)


def test_a_message_that_says_nothing() -> None:
    assert type_from_proto(TypeProto()) is None
    assert type_from_proto(helper.make_sequence_type_proto(TypeProto())) is None


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.float16).reshape(2, 3),
        np.array(True),
        np.zeros((0, 3), np.int8),
        np.array(["a", "é"], object),
        np.arange(6).reshape(2, 3).T,
    ],
)
def test_tensors_there_and_back(array: np.ndarray[Any, Any]) -> None:
    found = tensor_from_proto(tensor_to_proto(array, "name"))
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize(
    ("proto", "message"),
    [
        (TensorProto(name="t", data_type=1, dims=[3], raw_data=b"\0" * 8), "is no float32 array of shape"),
        (TensorProto(name="t", data_type=1, dims=[-3]), "has the shape"),
        (TensorProto(name="t", data_type=8, dims=[1], string_data=[b"\xff"]), "is no string array of shape"),
        (TensorProto(name="t", data_type=77), "unknown ONNX element type 77"),
    ],
)
def test_damaged_tensors(proto: TensorProto, message: str) -> None:
    with pytest.raises(InvalidModelError, match=message):
        tensor_from_proto(proto)


@pytest.mark.parametrize(
    "value", [1.5, 3, "text", b"\xff", (1.5, 2.0), (1, 2), ("a", "b"), F32, TensorType(None, DType.BOOL)]
)
def test_attributes_there_and_back(value: AttrValue) -> None:
    proto = attribute_to_proto("name", value, "NoOperatorReadsThis", "")
    assert attributes_from_protos([proto]) == Attrs({"name": value})


def test_tensor_attributes_there_and_back() -> None:
    constant = Constant(np.arange(3))
    for value in (constant, (constant, constant)):
        found = attributes_from_protos([attribute_to_proto("value", value, "Constant", "")])["value"]
        for item in found if isinstance(found, tuple) else (found,):
            assert isinstance(item, Constant)
            np.testing.assert_array_equal(item.data, constant.data)


def test_the_schema_decides_the_kind_of_an_empty_list() -> None:
    proto = attribute_to_proto("nodes_values", (), "TreeEnsembleRegressor", "ai.onnx.ml")
    assert proto.type == AttributeProto.FLOATS
    assert attribute_to_proto("perm", (), "Transpose", "").type == AttributeProto.INTS
    assert attribute_to_proto("axis", (), "Softmax", "").type == AttributeProto.INTS


def test_graphs_are_left_out() -> None:
    graph = helper.make_graph([], "g", [], [])
    assert len(attributes_from_protos([helper.make_attribute("body", graph)])) == 0


def test_kinds_that_are_not_supported() -> None:
    graphs = helper.make_attribute("bodies", [helper.make_graph([], "g", [], [])])
    with pytest.raises(UnsupportedModelError, match="attribute 'bodies' has the kind GRAPHS"):
        attributes_from_protos([graphs])


def test_a_reference_outside_of_a_function() -> None:
    proto = AttributeProto(name="alpha", ref_attr_name="slope", type=AttributeProto.FLOAT)
    with pytest.raises(InvalidModelError, match="refers to 'slope', an attribute of a function"):
        attributes_from_protos([proto])


def test_sparse_tensors() -> None:
    values = np.array([1, 2], np.float32)
    expected = [[1, 0, 0], [0, 0, 2]]
    assert densify((2, 3), values, np.array([0, 5])).tolist() == expected
    assert densify((2, 3), values, np.array([[0, 0], [1, 2]])).tolist() == expected
    with pytest.raises(InvalidModelError, match=r"a sparse tensor of shape \(2, 3\) cannot be read"):
        densify((2, 3), values, np.array([0, 6]))


def test_tensors_in_attributes_are_read_only() -> None:
    tensor = numpy_helper.from_array(np.ones(2, np.float32))
    attribute = helper.make_attribute("value", tensor)
    several = helper.make_attribute("values", [tensor])
    found = attributes_from_protos([attribute, several])
    values = found["values"]
    assert isinstance(values, tuple)
    for constant in (found["value"], *values):
        assert isinstance(constant, Constant)
        assert not constant.data.flags.writeable
