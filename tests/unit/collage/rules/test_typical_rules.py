"""The typical combinations of rules (seed collage_rfc), and the names they are registered under."""

from __future__ import annotations

import pytest
from tests.collage_programs import calls, main_graph, program
from tests.collage_rules import ACME, found_by, labels

from intarsia.collage.candidates.candidate_partition import CandidatePartition, PartitionRule
from intarsia.collage.rules.registered_rule import (
    holding_partition_rule,
    register_partition_rule,
    registered_rule,
)
from intarsia.collage.rules.rule_limits import RuleLimits
from intarsia.collage.rules.typical_rules import (
    fuse_ops_rule,
    fused_operators_rule,
    graph_style_rule,
    host_rule,
    just_patterns_rule,
    library_rule,
    operator_predicate_rule,
    pattern_table_rule,
    reference_rule,
    single_operators_rule,
)
from intarsia.collage.sub_graph import SubGraphConfig
from intarsia.ir import Call, Op
from intarsia.ir.pattern import is_op, wildcard
from intarsia.op.operator_predicate import holding_operator_predicate
from intarsia.op.pattern_table import CompositePattern, holding_pattern_table
from intarsia.support.errors import UsageError
from intarsia.target import Target

TEXT = """
    def @main(%x: Tensor[(1, 4, 6, 6), float32], %w: Tensor[(4, 4, 1, 1), float32]) {
      Softmax(Neg(Relu(Add(Conv(%x, %w), %x))))
    }
"""
GRAPH = main_graph(program(TEXT))
CONV_ADD = CompositePattern("conv_add", is_op("Add")(is_op("Conv")(wildcard(), wildcard()), wildcard()))
RELU = CompositePattern("relu", is_op("Relu")(wildcard()))
TABLE = (CONV_ADD, RELU)
COMPILED = {
    "Primitive": 1,
    "Compiler": "acme",
    "target": "cpu -toolchain=acme",
    "global_symbol": "collage_acme",
}


def supports(call: Call) -> bool:
    return isinstance(call.op, Op) and call.op.name in {"Conv", "Add", "Softmax", "Neg"}


def marks(candidate: CandidatePartition) -> dict[str, object]:
    (outer,) = candidate.sub_graph.nested
    assert outer.sub_graph.inside == candidate.sub_graph.inside
    return dict(outer.attrs)


def composites(candidate: CandidatePartition) -> list[object]:
    (outer,) = candidate.sub_graph.nested
    return [one.attrs.get("Composite") for one in outer.sub_graph.nested]


def test_operator_predicates() -> None:
    found = found_by(operator_predicate_rule(supports), GRAPH)
    assert labels(found) == ["Add", "Conv", "Conv+Add", "Neg", "Neg+Softmax", "Softmax"]
    assert all(marks(one) == COMPILED for one in found)
    assert not any(composites(one) for one in found)


def test_a_pattern_table() -> None:
    found = found_by(pattern_table_rule("acme", TABLE), GRAPH)
    assert labels(found) == ["Conv+Add", "Conv+Add+Relu", "Relu"]
    assert all(marks(one) == COMPILED for one in found)
    by_label = {one.sub_graph.label: composites(one) for one in found}
    assert by_label == {
        "Conv+Add": ["acme.conv_add"],
        "Relu": ["acme.relu"],
        "Conv+Add+Relu": ["acme.conv_add", "acme.relu"],
    }
    assert [one.rule_name for one in found] == ["acme.conv_add", "acme.relu", "acme.conv_add+acme.relu"]
    assert len(found_by(pattern_table_rule("acme", TABLE, combiners=()), GRAPH)) == 2


def test_a_library_within_native_kernels() -> None:
    found = found_by(library_rule("acme", (CONV_ADD,)), GRAPH, Target("cpu"))
    assert labels(found) == sorted(
        [
            *("Conv", "Add", "Relu", "Neg", "Conv+Add", "Conv+Add", "Add+Relu", "Relu+Neg"),
            *("Conv+Add+Relu", "Conv+Add+Relu", "Add+Relu+Neg", "Conv+Add+Relu+Neg", "Conv+Add+Relu+Neg"),
        ]
    )
    assert {len(one.sub_graph.nested) for one in found} == {0, 1}
    for one in found:
        assert [part.attrs.get("Composite") for part in one.sub_graph.nested] in ([], ["acme.conv_add"])


def test_fuse_ops() -> None:
    found = found_by(fuse_ops_rule(), GRAPH, Target("cpu"))
    assert labels(found) == sorted(
        [
            *("Conv", "Add", "Relu", "Neg", "Conv+Add", "Add+Relu", "Relu+Neg"),
            *("Conv+Add+Relu", "Add+Relu+Neg", "Conv+Add+Relu+Neg"),
        ]
    )
    assert all(marks(one) == {"Primitive": 1, "global_symbol": "collage_native"} for one in found)
    limits = RuleLimits(SubGraphConfig(max_depth=2))
    assert max(one.sub_graph.depth for one in found_by(fuse_ops_rule(limits), GRAPH)) == 2


def test_just_patterns() -> None:
    found = found_by(just_patterns_rule(TABLE), GRAPH)
    assert [one.name for one in found] == ["acme.conv_add", "acme.relu"]
    assert all(marks(one) == COMPILED for one in found)


def test_operators_of_a_toolchain_fused_and_single() -> None:
    found = found_by(fused_operators_rule(supports), GRAPH)
    assert labels(found) == ["Add", "Conv", "Conv+Add", "Neg", "Softmax"]
    assert labels(found_by(single_operators_rule(supports), GRAPH)) == ["Add", "Conv", "Neg", "Softmax"]


def test_graph_style() -> None:
    found = found_by(graph_style_rule(lambda _: True), GRAPH)
    assert len({one.sub_graph.inside for one in found}) == len(found)
    assert "Conv+Add+Relu+Neg+Softmax" in labels(found)
    assert len(found) == 5 * 6 // 2
    assert all(marks(one) == COMPILED for one in found)


def test_reference_and_host_share_the_nodes() -> None:
    reference = found_by(reference_rule(), GRAPH, Target("cpu -toolchain=reference"))
    assert sorted(index for one in reference for index in one.sub_graph.inside) == calls(GRAPH)
    host = found_by(host_rule(), GRAPH, Target("cpu"))
    covered = sorted(index for one in (*reference, *host) for index in one.sub_graph.inside)
    assert GRAPH.set_of(covered).is_subset(GRAPH.set_of(range(len(GRAPH))) - GRAPH.everywhere)
    assert len(covered) == len(calls(GRAPH)) + 2


def test_the_number_of_joined_candidates_is_bounded() -> None:
    notes: list[str] = []
    limits = RuleLimits(max_joined=2, on_note=notes.append)
    assert len(found_by(fuse_ops_rule(limits), GRAPH)) == 4 + 2
    assert len(notes) == 1


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("operator_predicate", operator_predicate_rule(supports)),
        ("pattern_table", pattern_table_rule("acme", TABLE)),
        ("library", library_rule("acme", TABLE)),
        ("fuse_ops", fuse_ops_rule()),
        ("just_patterns", just_patterns_rule(TABLE)),
        ("fused_operators", fused_operators_rule(supports)),
        ("graph_style", graph_style_rule(supports)),
    ],
)
def test_typical_rules_have_names(name: str, expected: PartitionRule) -> None:
    with holding_operator_predicate("acme", supports), holding_pattern_table("acme", TABLE):
        assert registered_rule(name, ACME, RuleLimits()) == expected


def test_a_rule_of_ones_own() -> None:
    with holding_partition_rule("mine", lambda target, limits: reference_rule()):
        assert registered_rule("mine", ACME, RuleLimits()) == reference_rule()
        with pytest.raises(UsageError, match="partition rule 'mine' is already registered"):
            register_partition_rule("mine", lambda target, limits: host_rule())


def test_wrong_names_and_targets() -> None:
    with pytest.raises(UsageError) as caught:
        registered_rule("fuse_op", ACME, RuleLimits())
    assert str(caught.value) == (
        "unknown partition rule 'fuse_op'\n"
        '  in target "cpu -toolchain=acme", option -partition_rule\n'
        "help: did you mean fuse_ops or fused_operators?"
    )
    with pytest.raises(UsageError, match="expected a target with -toolchain=NAME"):
        registered_rule("operator_predicate", Target("cpu"), RuleLimits())
