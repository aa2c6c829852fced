from collections import Counter

from onnx import defs

from intarsia.ir import Op
from intarsia.op import PINNED_OPSET, OpPatternKind, op_pattern
from intarsia.op.intarsia_ops import INTARSIA_OPS
from intarsia.op.pattern import _INTARSIA, _TABLE, TOP_PATTERN


def operators_at_pinned_opset() -> set[str]:
    newest = {
        schema.name: schema
        for schema in sorted(
            defs.get_all_schemas_with_history(), key=lambda schema: int(schema.since_version)
        )
        if not schema.domain and schema.since_version <= PINNED_OPSET
    }
    return {name for name, schema in newest.items() if not schema.deprecated}


def test_every_operator_of_the_pinned_opset_stands_in_the_table_once() -> None:
    counted = Counter(name for names in _TABLE.values() for name in names.split())
    assert [name for name, count in counted.items() if count > 1] == []
    assert set(counted) == operators_at_pinned_opset()
    assert set(TOP_PATTERN) == set(counted)


def test_each_kind_lists_its_operators_in_order() -> None:
    for names in _TABLE.values():
        assert names.split() == sorted(names.split())


def test_intarsia_operators_have_a_kind() -> None:
    assert set(_INTARSIA) == set(INTARSIA_OPS)


def test_kind_of_an_operator() -> None:
    assert op_pattern(Op("Relu")) is OpPatternKind.ELEMWISE
    assert op_pattern(Op("Add")) is OpPatternKind.BROADCAST
    assert op_pattern(Op("Conv")) is OpPatternKind.OUT_ELEMWISE_FUSABLE
    assert op_pattern(Op("layout_transform", "intarsia")) is OpPatternKind.INJECTIVE


def test_other_operators_are_opaque() -> None:
    assert op_pattern(Op("Relu", "ai.onnx.ml")) is OpPatternKind.OPAQUE
    assert op_pattern(Op("NoSuchOperator")) is OpPatternKind.OPAQUE


def test_kinds_are_ordered_by_how_well_they_fuse() -> None:
    assert OpPatternKind.ELEMWISE < OpPatternKind.BROADCAST < OpPatternKind.INJECTIVE < OpPatternKind.OPAQUE
