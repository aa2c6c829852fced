"""Candidates joined by combiner rules."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tests.collage_programs import calls, main_graph, program
from tests.collage_rules import found_by, labels, numbers

from intarsia.collage.rules.all_simple import AllSimpleCombinerRule
from intarsia.collage.rules.by_kind import ByKindSimpleCombinerRule
from intarsia.collage.rules.combine import CombinePartitionRule
from intarsia.collage.rules.combiner_rule import CombinerRule
from intarsia.collage.rules.df_pattern import DFPatternPartitionRule
from intarsia.collage.rules.each_call import EachCallPartitionRule
from intarsia.collage.rules.join_anything import JoinAnythingCombinerRule
from intarsia.collage.rules.only_valid import OnlyValidPartitionRule
from intarsia.collage.rules.op_call_by_kind import OpCallByKindPartitionRule
from intarsia.collage.rules.tuple_arg import TupleArgCombinerRule
from intarsia.collage.rules.tuple_proj import TupleProjCombinerRule
from intarsia.collage.rules.typical_rules import FUSE_OPS_COMBINERS, JOIN_ANYTHING
from intarsia.collage.rules.union import UnionPartitionRule
from intarsia.collage.sub_graph import SubGraph, SubGraphConfig
from intarsia.ir.pattern import is_tuple, is_tuple_get, wildcard
from intarsia.op import OpPatternKind

DIAMOND = "def @main(%x: T) { %0 = Abs(%x); %1 = Relu(%0); %2 = Neg(%0); Add(%1, %2) }"
CONVOLUTION = """
    def @main(%x: Tensor[(1, 4, 6, 6), float32], %w: Tensor[(4, 4, 1, 1), float32]) {
      %0 = Conv(%x, %w);
      %1 = Add(%0, %x);
      %2 = Relu(%1);
      ReduceSum(Conv(%2, %w))
    }
"""
SPLIT = """
    def @main(%x: Tensor[(4,), float32]) {
      %0 = Split(Neg(%x), outputs=2, num_outputs=2);
      Add(Relu(%0.0), Abs(%0.1))
    }
"""


def combine(*combiners: CombinerRule, max_depth: int = 0) -> CombinePartitionRule:
    return CombinePartitionRule(OpCallByKindPartitionRule(), combiners, max_depth)


def by_kind(upstream: OpPatternKind, downstream: OpPatternKind) -> AllSimpleCombinerRule:
    return AllSimpleCombinerRule((ByKindSimpleCombinerRule(upstream, downstream),))


def test_by_kind() -> None:
    graph = main_graph(program(CONVOLUTION))
    fused = by_kind(OpPatternKind.OUT_ELEMWISE_FUSABLE, OpPatternKind.BROADCAST)
    assert numbers(graph, found_by(combine(fused), graph)) == {
        *((0,), (1,), (2,), (3,), (4,)),
        *((0, 1), (1, 2), (0, 1, 2)),
    }
    reduced = by_kind(OpPatternKind.BROADCAST, OpPatternKind.COMM_REDUCE)
    assert numbers(graph, found_by(combine(reduced), graph)) == {(0,), (1,), (2,), (3,), (4,), (1, 2)}


def test_the_rules_of_fuse_ops() -> None:
    graph = main_graph(program("def @main(%x: T) { ReduceSum(Relu(Add(%x, Flatten(Neg(%x))))) }"))
    found = numbers(graph, found_by(combine(*FUSE_OPS_COMBINERS), graph))
    assert (0, 1) in found  # injective
    assert (2, 3, 4) in found  # broadcast into a reduction
    assert (1, 2, 3) in found
    assert (1, 2, 3, 4) not in found  # nothing injective goes into a reduction
    assert (0, 1, 2, 3, 4) not in found


def test_a_diamond_is_joined_whole() -> None:
    graph = main_graph(program(DIAMOND))
    every = found_by(combine(*JOIN_ANYTHING), graph)
    assert numbers(graph, every) == {
        *((0,), (1,), (2,), (3,)),
        *((0, 1), (0, 2), (1, 3), (2, 3)),
        *((0, 1, 2), (1, 2, 3), (0, 1, 2, 3)),
    }
    valid = found_by(OnlyValidPartitionRule(combine(*JOIN_ANYTHING), SubGraphConfig()), graph)
    assert numbers(graph, valid) == {
        *((0,), (1,), (2,), (3,)),
        *((1, 3), (2, 3), (1, 2, 3), (0, 1, 2, 3)),
    }


@dataclass(frozen=True)
class Exactly:
    """Joins what has these labels."""

    upstream: str
    downstream: str

    def fires(self, upstream: SubGraph, downstream: SubGraph) -> bool:
        return (upstream.label, downstream.label) == (self.upstream, self.downstream)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("Neg", "Relu"), ("Abs", "Neg+Relu")),  # an old one upstream of a new one: upstream misses it
        (("Abs", "Neg"), ("Abs+Neg", "Relu")),  # a new one upstream of an old one
    ],
)
def test_every_pair_is_tried(first: tuple[str, str], second: tuple[str, str]) -> None:
    graph = main_graph(program("def @main(%x: T) { Relu(Neg(Abs(%x))) }"))
    rule = combine(AllSimpleCombinerRule((Exactly(*first), Exactly(*second))))
    assert "Abs+Neg+Relu" in labels(found_by(rule, graph))


def test_pairs_of_new_ones_are_tried() -> None:
    graph = main_graph(program("def @main(%x: T) { Exp(Relu(Neg(Abs(%x)))) }"))
    rules = (Exactly("Abs", "Neg"), Exactly("Relu", "Exp"), Exactly("Abs+Neg", "Relu+Exp"))
    found = labels(found_by(combine(AllSimpleCombinerRule(rules)), graph))
    assert found == ["Abs", "Abs+Neg", "Abs+Neg+Relu+Exp", "Exp", "Neg", "Relu", "Relu+Exp"]


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_depth_is_bounded(depth: int) -> None:
    graph = main_graph(program("def @main(%x: T) { Exp(Relu(Neg(Abs(%x)))) }"))
    found = found_by(combine(*JOIN_ANYTHING, max_depth=depth), graph)
    assert len(found) == sum(4 - length + 1 for length in range(1, depth + 1))
    assert max(one.sub_graph.depth for one in found) == depth


def test_depth_is_the_longest_path_not_the_sum() -> None:
    graph = main_graph(program("def @main(%x: T) { Add(Neg(Abs(%x)), Exp(Relu(%x))) }"))
    found = found_by(combine(*JOIN_ANYTHING, max_depth=3), graph)
    assert (0, 1, 2, 3, 4) in numbers(graph, found)


def test_fields_of_a_tuple_go_with_what_makes_it() -> None:
    graph = main_graph(program(SPLIT))
    rule = combine(by_kind(OpPatternKind.INJECTIVE, OpPatternKind.INJECTIVE), TupleProjCombinerRule())
    found = labels(found_by(rule, graph))
    assert "Split+field+field" in found
    assert "Neg+Split+field+field" in found
    assert "Neg+Split+field+Relu+field" in found
    assert "Neg+Split+field+Relu+field+Abs+Add" in found
    assert not any(one.count("field") == 1 for one in found)


def test_producers_of_all_fields_of_a_tuple() -> None:
    graph = main_graph(program("def @main(%x: T) { Relu((Neg(%x), Abs(%x)).1) }"))
    fields = UnionPartitionRule(
        (OpCallByKindPartitionRule(), DFPatternPartitionRule("", is_tuple_get(wildcard())))
    )
    rule = CombinePartitionRule(fields, (TupleArgCombinerRule(),))
    assert labels(found_by(rule, graph)) == ["Abs", "Neg", "Neg+Abs+tuple+field", "Relu", "field"]


def test_a_tuple_with_a_field_that_nobody_makes() -> None:
    graph = main_graph(program("def @main(%x: T) { Relu((Neg(%x), %x).0) }"))
    fields = UnionPartitionRule(
        (
            OpCallByKindPartitionRule(),
            DFPatternPartitionRule("", is_tuple_get(is_tuple(wildcard(), wildcard()))),
        )
    )
    rule = CombinePartitionRule(fields, (TupleArgCombinerRule(),))
    assert labels(found_by(rule, graph)) == ["Neg", "Relu", "tuple+field"]


def test_producers_of_a_tuple_are_chosen_in_every_way() -> None:
    graph = main_graph(program("def @main(%x: T) { (Neg(Exp(%x)), Abs(Neg(%x))).0 }"))
    fields = DFPatternPartitionRule("", is_tuple_get(wildcard()))
    base = UnionPartitionRule((fields, OpCallByKindPartitionRule()))
    joined = CombinePartitionRule(
        base, (by_kind(OpPatternKind.INJECTIVE, OpPatternKind.INJECTIVE), TupleArgCombinerRule())
    )
    around = [one for one in labels(found_by(joined, graph)) if "tuple" in one]
    assert around == [
        "Exp+Neg+Abs+tuple+field",
        "Exp+Neg+Neg+Abs+tuple+field",
        "Neg+Abs+tuple+field",
        "Neg+Neg+Abs+tuple+field",
    ]


def test_one_candidate_that_makes_all_fields() -> None:
    graph = main_graph(program("def @main(%x: T) { %0 = Neg(%x); (%0, Abs(%0)).1 }"))
    fields = DFPatternPartitionRule("", is_tuple_get(wildcard()))
    base = UnionPartitionRule((fields, OpCallByKindPartitionRule()))
    combiners = (by_kind(OpPatternKind.INJECTIVE, OpPatternKind.INJECTIVE), TupleArgCombinerRule())
    assert "Neg+Abs+tuple+field" in labels(found_by(CombinePartitionRule(base, combiners), graph))


def test_what_joined_is_named_after_its_parts() -> None:
    graph = main_graph(program("def @main(%x: T) { Relu(Neg(%x)) }"))
    named = DFPatternPartitionRule("first", wildcard()(wildcard()))
    (_, _, both) = found_by(CombinePartitionRule(named, JOIN_ANYTHING), graph)
    assert both.rule_name == "first+first"
    (_, _, both) = found_by(CombinePartitionRule(EachCallPartitionRule(), JOIN_ANYTHING), graph)
    assert both.name == "acme.Neg+Relu"


def test_the_cap_is_reported() -> None:
    text = "def @main(%x: T) { " + "Neg(" * 20 + "%x" + ")" * 20 + " }"
    graph, notes = main_graph(program(text)), list[str]()
    rule = CombinePartitionRule(EachCallPartitionRule(), JOIN_ANYTHING, max_joined=30, on_note=notes.append)
    found = found_by(rule, graph)
    assert len(found) == 50
    assert max(len(one.sub_graph.inside) for one in found) <= 4
    assert notes == ["acme: stopped after joining 30 candidates; larger ones may be missing"]
    rule = CombinePartitionRule(EachCallPartitionRule(), JOIN_ANYTHING, on_note=notes.append)
    assert len(found_by(rule, graph)) == 210
    assert len(notes) == 1


def test_join_anything_joins_opaque_ones() -> None:
    graph = main_graph(program("def @main(%x: T) { Softmax(Hardmax(%x)) }"))
    rule = CombinePartitionRule(
        EachCallPartitionRule(), (AllSimpleCombinerRule((JoinAnythingCombinerRule(),)),)
    )
    assert labels(found_by(rule, graph)) == ["Hardmax", "Hardmax+Softmax", "Softmax"]
    assert len(calls(graph)) == 2
