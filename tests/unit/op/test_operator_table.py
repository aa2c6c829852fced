"""The table of operators: one row for each, and each column against what shows it independently."""

from __future__ import annotations

import ast
import re
from collections import Counter
from itertools import groupby, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import defs
from tests.each_case import each_case

import intarsia
from intarsia.ir import Constant, DType, Op, TensorType, Var
from intarsia.native.te.operators import compute_rules
from intarsia.op import PINNED_OPSET, call, op_pattern
from intarsia.op.evaluate import evaluate_call
from intarsia.op.intarsia_ops import INTARSIA_OPS
from intarsia.op.known_value import known_value
from intarsia.op.opaque import operator_domain
from intarsia.op.operator_facts import LayoutKind, OperatorTrait, OpPatternKind, PrecisionKind, SumKind
from intarsia.op.operator_table import (
    FOREIGN,
    FOREIGN_ROWS,
    INTARSIA_ROWS,
    ONNX_ROWS,
    OPERATORS,
    facts_of,
    operators_with,
)
from intarsia.op.opset import schema_of
from intarsia.op.work import _LENGTHS, multiply_adds, reduction_length
from intarsia.support.errors import InvalidModelError

SOURCES = Path(intarsia.__file__).parent
ELSEWHERE = {
    ("frontend/onnx/legacy_ops.py", "Upsample"): "converted to Resize on import",
    ("measure/inputs/integer_demands.py", "Scatter"): "was replaced by ScatterElements in opset 11",
    ("toolchain/openvino/profiler.py", "Convolution"): "OpenVINO's name of Conv",
    ("toolchain/openvino/profiler.py", "Deconvolution"): "OpenVINO's name of ConvTranspose",
    ("toolchain/openvino/profiler.py", "FullyConnected"): "OpenVINO's name of a product with a constant",
}
"""Names in tables that are operators of an older opset or of an engine, and why they stand there."""

WITHOUT_RULE = """
    AffineGrid Bernoulli BitCast BlackmanWindow Compress ConcatFromSequence Constant DFT DeformConv Det GRU
    HammingWindow HannWindow If ImageDecoder LSTM Loop MaxRoiPool MaxUnpool MelWeightMatrix Multinomial
    NegativeLogLikelihoodLoss NonMaxSuppression NonZero Optional OptionalGetElement OptionalHasElement RNN
    RandomNormal RandomNormalLike RandomUniform RandomUniformLike RegexFullMatch RoiAlign STFT Scan SequenceAt
    SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength SequenceMap
    SoftmaxCrossEntropyLoss SplitToSequence StringConcat StringNormalizer StringSplit TfIdfVectorizer Unique
"""
"""Operators that native has no compute rule for."""


def operators_at_pinned_opset() -> set[str]:
    newest = {
        schema.name: schema
        for schema in sorted(
            defs.get_all_schemas_with_history(), key=lambda schema: int(schema.since_version)
        )
        if not schema.domain and schema.since_version <= PINNED_OPSET
    }
    return {name for name, schema in newest.items() if not schema.deprecated}


def tensor(name: str, *shape: int, dtype: DType = DType.FLOAT32) -> Var:
    return Var(name, checked_type=TensorType(shape, dtype))


def names_where(**facts: Any) -> set[str]:
    return {
        name
        for name, row in OPERATORS.items()
        if all(getattr(row, field) == value for field, value in facts.items())
    }


def test_every_operator_of_the_pinned_opset_has_one_row() -> None:
    counted = Counter(row.name for row in ONNX_ROWS)
    assert [name for name, count in counted.items() if count > 1] == []
    assert set(counted) == operators_at_pinned_opset()


def test_each_of_our_operators_has_one_row() -> None:
    assert sorted(row.name for row in INTARSIA_ROWS) == sorted(INTARSIA_OPS)


def test_foreign_rows_name_operators_of_declared_domains() -> None:
    pytest.importorskip("onnxruntime")
    for row in FOREIGN_ROWS:
        domain, _, name = row.name.partition("::")
        assert operator_domain(domain).schema(name) is not None, row.name


def test_rows_are_grouped_by_fusion_kind_and_sorted_by_name() -> None:
    groups = [(kind, [row.name for row in rows]) for kind, rows in groupby(ONNX_ROWS, lambda row: row.fusion)]
    kinds = [kind for kind, _ in groups]
    assert kinds == sorted(set(kinds))
    assert [names for _, names in groups] == [sorted(names) for _, names in groups]


def test_an_unknown_operator_is_an_error_and_a_foreign_one_has_a_stated_row() -> None:
    for op in (Op("NoSuchOperator"), Op("no_such_operator", "intarsia"), Op("Upsample")):
        with pytest.raises(InvalidModelError, match="unknown operator"):
            facts_of(op)
    assert facts_of(Op("Relu", "ai.onnx.ml")) is facts_of(Op("Conv", "com.example")) is FOREIGN
    assert op_pattern(Op("Relu", "com.example")) is OpPatternKind.OPAQUE
    assert FOREIGN.precision is PrecisionKind.KEEP
    assert facts_of(Op("Range", "com.microsoft")).has(OperatorTrait.SIZED)
    assert facts_of(Op("layout_transform", "intarsia")).fusion is OpPatternKind.INJECTIVE


def test_a_trait_is_asked_for_alone_or_with_others() -> None:
    row = OPERATORS["Add"]
    assert row.has(OperatorTrait.COMMUTATIVE)
    assert row.has(OperatorTrait.COMMUTATIVE | OperatorTrait.RANDOM)
    assert not row.has(OperatorTrait.RANDOM)
    assert operators_with(OperatorTrait.FLOAT_SIZES) == {"Range", "Resize"}


# Names elsewhere.


def operator_tables() -> list[tuple[str, str, set[str]]]:
    """Module-level values of the sources most of whose words are operators: file, variable, words."""
    return [
        (path.relative_to(SOURCES).as_posix(), ast.unparse(statement), words)
        for path in sorted(SOURCES.rglob("*.py"))
        for text in [path.read_text()]
        if len(OPERATORS.keys() & set(re.findall(r"\w+", text))) >= 3
        for statement in ast.parse(text).body
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None
        for words in [_words(statement.value)]
        if len(words & OPERATORS.keys()) >= 3 and 2 * len(words & OPERATORS.keys()) >= len(words)
    ]


def _words(value: ast.expr) -> set[str]:
    texts = (node.value for node in ast.walk(value) if isinstance(node, ast.Constant))
    words = {word for text in texts if isinstance(text, str) for word in text.split()}
    return {word for word in words if word.isidentifier() and word[0].isupper()}


@pytest.mark.slow
def test_tables_elsewhere_name_operators_that_have_rows() -> None:
    tables = operator_tables()
    assert len(tables) > 60, "they are not found any more"
    unknown = {(path, word) for path, _, words in tables for word in words - OPERATORS.keys()}
    assert unknown == ELSEWHERE.keys()


def test_compute_rules_are_of_operators_that_have_rows() -> None:
    ruled = set(compute_rules())
    for name in ruled:
        domain, _, own = name.rpartition("::")
        facts_of(Op(own, domain))
    assert set(OPERATORS) - ruled == set(WITHOUT_RULE.split())


def test_every_kind_of_sum_has_a_rule() -> None:
    assert set(_LENGTHS) == set(SumKind)


# Columns.


@each_case("name", sorted(names_where(layout=LayoutKind.ELEMENTWISE)))
def test_elementwise_operators_commute_with_a_permutation_of_axes(name: str) -> None:
    """Their arguments are stretched where they may be; and elementwise ones have the first one's shape."""
    args = elementwise_arguments(name)
    value = evaluated(name, args)
    assert value.shape == np.broadcast_shapes(*(arg.shape for arg in args))
    if OPERATORS[name].fusion is OpPatternKind.ELEMWISE:
        assert value.shape == args[0].shape
    for order in permutations(range(3)):
        moved = evaluated(name, [arg.transpose(order) if arg.ndim else arg for arg in args])
        np.testing.assert_array_equal(moved, value.transpose(order))


def elementwise_arguments(name: str) -> list[np.ndarray[Any, Any]]:
    """An argument for each formal one that must be there, two where the number is free."""
    schema = schema_of(name)
    variadic = any(formal.option.name == "Variadic" for formal in schema.inputs)
    count = 2 if variadic else schema.min_input
    rng = np.random.default_rng(0)
    is_stretched = OPERATORS[name].fusion is OpPatternKind.BROADCAST
    shapes = [(2, 3, 4), (2, 1, 4), (1, 3, 1)] if is_stretched else [(2, 3, 4)] * 3
    return [
        (rng.random(shape) * 0.8 + 0.1 if np.dtype(dtype).kind == "f" else rng.integers(0, 9, shape)).astype(
            dtype
        )
        for shape, dtype in zip(shapes, argument_types(schema), strict=True)
    ][:count]


def argument_types(schema: Any) -> list[Any]:
    """The first of float32, bool and uint8 that each argument takes."""
    formals = [schema.inputs[min(position, len(schema.inputs) - 1)] for position in range(3)]
    spelled = {"tensor(float)": np.float32, "tensor(bool)": np.bool_, "tensor(uint8)": np.uint8}
    return [
        next(dtype for text, dtype in spelled.items() if text in allowed_types(schema, formal))
        for formal in formals
    ]


def test_what_looks_elementwise_but_is_not_has_an_argument_that_is_no_operand() -> None:
    """Statistics, a type, a ratio, a shape, scales."""
    kinds = (OpPatternKind.ELEMWISE, OpPatternKind.BROADCAST)
    found = {name for kind in kinds for name in names_where(fusion=kind)}
    assert found - names_where(layout=LayoutKind.ELEMENTWISE) == {
        *("BatchNormalization", "CastLike", "DequantizeLinear", "Dropout", "Expand", "QuantizeLinear")
    }


def test_operators_of_images_are_those_that_onnx_describes_so() -> None:
    """The others have images, too, but no pass converts them to channels last."""
    found = {
        name
        for name in OPERATORS
        for schema in [schema_of(name)]
        if schema.inputs and re.search(r"[(\[]N ?[x,] ?C", schema.inputs[0].description)
    }
    assert found - names_where(layout=LayoutKind.IMAGE) == {
        *("Col2Im", "ConvInteger", "DeformConv", "GridSample", "MaxRoiPool", "MaxUnpool"),
        *("NegativeLogLikelihoodLoss", "QLinearConv", "RoiAlign"),
    }
    assert names_where(layout=LayoutKind.IMAGE) <= found


def test_reductions_sum_what_they_reduce() -> None:
    assert names_where(summation=SumKind.REDUCED) == names_where(fusion=OpPatternKind.COMM_REDUCE)


PRODUCTS: tuple[tuple[str, list[tuple[int, ...]], dict[str, Any], int], ...] = (
    ("Conv", [(1, 4, 6, 6), (2, 2, 3, 3)], {"group": 2}, 18),
    ("ConvInteger", [(1, 4, 6, 6), (2, 4, 3, 1)], {}, 12),
    ("ConvTranspose", [(1, 4, 6, 6), (4, 2, 2, 2)], {}, 16),
    ("Gemm", [(5, 3), (5, 2)], {"transA": 1}, 5),
    ("MatMul", [(3, 5), (5, 2)], {}, 5),
    ("MatMulInteger", [(3, 5), (5, 2)], {}, 5),
)


@pytest.mark.parametrize(("name", "shapes", "attrs", "terms"), PRODUCTS)
def test_products_of_ones_are_their_number_of_terms(name: str, shapes: Any, attrs: Any, terms: int) -> None:
    dtype = np.uint8 if name.endswith("Integer") else np.float32
    product = call(name, *(Constant(np.ones(shape, dtype)) for shape in shapes), **attrs)
    value = evaluate_call(product)
    assert isinstance(value, np.ndarray)
    assert value.max() == reduction_length(product) == terms
    assert multiply_adds(product) == terms * value.size


def test_products_have_a_sum_and_weights() -> None:
    products = operators_with(OperatorTrait.PRODUCT)
    assert products == {name for name, *_ in PRODUCTS} | {"QLinearConv"}
    assert not products & names_where(summation=SumKind.NO_SUM)
    assert products - operators_with(OperatorTrait.WEIGHTED) == {"QLinearConv"}
    assert names_where(precision=PrecisionKind.LOWER) == {*products, "Einsum"} - {
        *("ConvInteger", "MatMulInteger", "QLinearConv")
    }


def test_random_operators_are_those_that_have_a_seed() -> None:
    seeded = {name for name in OPERATORS if "seed" in schema_of(name).attributes}
    assert seeded == operators_with(OperatorTrait.RANDOM | OperatorTrait.RANDOM_IN_TRAINING)


def test_operators_with_a_body_are_those_with_a_graph_but_if() -> None:
    graphs = (defs.OpSchema.AttrType.GRAPH, defs.OpSchema.AttrType.GRAPHS)
    found = {
        name
        for name in OPERATORS
        if any(attribute.type in graphs for attribute in schema_of(name).attributes.values())
    }
    assert found - {"If"} == operators_with(OperatorTrait.HAS_BODY)


def test_operators_of_structures_take_or_give_what_is_no_tensor() -> None:
    found = {
        name
        for name in OPERATORS
        for schema in [schema_of(name)]
        if any(
            spelled.startswith(("seq", "optional"))
            for formal in (*schema.inputs, *schema.outputs)
            for spelled in allowed_types(schema, formal)
        )
    }
    # These take tensors as well, or call a body.
    assert found - {"Identity", "If", "Loop", "SequenceMap"} == operators_with(OperatorTrait.STRUCTURE)


def test_sizes_that_may_be_floats() -> None:
    """OneHot's depth may be one, too: shapes are not inferred from it."""
    found = {
        name
        for name, row in OPERATORS.items()
        for schema in [schema_of(name)]
        for position in row.constant_arguments
        if "tensor(float)" in allowed_types(schema, schema.inputs[position])
    }
    assert found - {"OneHot"} == operators_with(OperatorTrait.FLOAT_SIZES)


def test_constants_that_make_results_no_larger() -> None:
    """An operator with a constant argument is sized by it, or it only orders, divides or selects elements."""
    found = {name for name, row in OPERATORS.items() if row.constant_arguments}
    assert found - operators_with(OperatorTrait.SIZED) - names_where(layout=LayoutKind.REDUCTION) == {
        *("CumProd", "CumSum", "Reshape", "Slice", "Split", "SplitToSequence", "Squeeze", "TopK", "Trilu"),
        "Unsqueeze",
    }


@pytest.mark.parametrize("name", ["Shape", "Size"])
def test_operators_that_read_shapes_are_the_same_for_other_elements(name: str) -> None:
    zeros, ones = np.zeros((2, 3), np.float32), np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(evaluated(name, [zeros]), evaluated(name, [ones]))
    assert {"Shape", "Size"} == operators_with(OperatorTrait.READS_SHAPE)


@each_case("name", sorted(names_where(fusion=OpPatternKind.BROADCAST, layout=LayoutKind.ELEMENTWISE)))
def test_commutative_operators_may_be_given_their_arguments_in_any_order(name: str) -> None:
    """Sum and Mean take any number of arguments, and Max and Min may tell 0.0 and -0.0 apart by order."""
    if schema_of(name).min_input == 3 or name in ("Max", "Mean", "Min", "Sum"):
        assert not OPERATORS[name].has(OperatorTrait.COMMUTATIVE)
        return
    left, right = elementwise_arguments(name)
    right = np.resize(right, left.shape)
    try:
        swapped, value = evaluated(name, [right, left]), evaluated(name, [left, right])
    except InvalidModelError:  # the arguments are of different types
        assert not OPERATORS[name].has(OperatorTrait.COMMUTATIVE)
        return
    is_same = swapped.tobytes() == value.tobytes()
    assert is_same is OPERATORS[name].has(OperatorTrait.COMMUTATIVE)


@each_case("name", sorted(names_where(layout=LayoutKind.ELEMENTWISE)))
def test_values_are_known_of_the_operators_that_shapes_are_computed_with(name: str) -> None:
    attrs = REQUIRED.get(name, {})
    args = [arg[:1] for arg in elementwise_arguments(name)]  # 12 elements; more floating-point ones are data
    try:
        made = call(name, *(Constant(arg.astype(np.float32)) for arg in args), **attrs)
    except InvalidModelError:  # of booleans, of whole numbers, or of two types
        made = call(name, *map(Constant, args), **attrs)
    assert isinstance(made.checked_type, TensorType)
    may_be_shape = made.checked_type.dtype in (DType.FLOAT32, DType.BOOL)
    assert (known_value(made) is not None) is (may_be_shape and OPERATORS[name].has(OperatorTrait.KNOWN))


def test_operators_are_flat_where_noise_of_the_argument_does_not_show_in_the_result() -> None:
    """Of those with one argument; Softmax is flat where one element is far larger than the others."""
    arguments = np.linspace(-64, 64, 2**16 + 1, dtype=np.float32)
    arguments = np.concatenate([arguments, arguments / 64])
    moved = arguments * np.float32(1 + 2**-10)
    flat = {"Softmax"}
    for row in names_where(fusion=OpPatternKind.ELEMWISE):
        if row in {"BitCast", "BitwiseNot", "Cast", "CastLike", "Not"}:
            continue
        with np.errstate(all="ignore"):
            results, others = (evaluated(row, [args]).astype(np.float64) for args in (arguments, moved))
            change = np.abs(others - results) / np.abs(results)
            mantissas = np.frexp(results)[0] * 2**8
            is_rounded = np.isfinite(change) & (mantissas != np.rint(mantissas))
        if (change[is_rounded] < 2**-10 / 16).any():
            flat.add(row)
    assert flat == {name for name, facts in OPERATORS.items() if facts.has(OperatorTrait.FLAT)}


def allowed_types(schema: Any, formal: Any) -> list[str]:
    """The types that an argument or result of a schema may have, spelled as ONNX does."""
    allowed = {item.type_param_str: list(item.allowed_type_strs) for item in schema.type_constraints}
    return allowed.get(formal.type_str, [formal.type_str])


REQUIRED: dict[str, dict[str, Any]] = {
    "BitShift": {"direction": "LEFT"},
    "Cast": {"to": 1},
    "BitCast": {"to": 6},
}


def evaluated(name: str, args: list[np.ndarray[Any, Any]], **attrs: Any) -> np.ndarray[Any, Any]:
    value = evaluate_call(call(name, *map(Constant, args), **{**REQUIRED.get(name, {}), **attrs}))
    assert isinstance(value, np.ndarray)
    return value
