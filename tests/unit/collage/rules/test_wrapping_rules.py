"""Rules that wrap candidates in functions, unite those of other rules, and sort out invalid ones."""

from __future__ import annotations

from tests.collage_programs import assert_program, main_graph, program
from tests.collage_rules import found_by, labels, numbers, partitioned_by

from intarsia.collage.rules.composite import CompositePartitionRule
from intarsia.collage.rules.df_pattern import DFPatternPartitionRule
from intarsia.collage.rules.each_call import EachCallPartitionRule
from intarsia.collage.rules.only_valid import OnlyValidPartitionRule
from intarsia.collage.rules.primitive import PrimitivePartitionRule
from intarsia.collage.rules.union import UnionPartitionRule
from intarsia.collage.sub_graph import SubGraphConfig
from intarsia.ir.pattern import is_op, wildcard
from intarsia.target import Target

CHAIN = "def @main(%x: T) { Exp(Relu(Neg(%x))) }"
NEG_RELU = DFPatternPartitionRule("neg_relu", is_op("Relu")(is_op("Neg")(wildcard())))
RELU = DFPatternPartitionRule("relu", is_op("Relu")(wildcard()))
COMPOSITE = CompositePartitionRule("reference.neg_relu", NEG_RELU)


def test_composite() -> None:
    mod = program(CHAIN)
    (found,) = found_by(COMPOSITE, main_graph(mod))
    assert found.rule_name == "reference.neg_relu"
    assert_program(
        partitioned_by(mod, [found]),
        """
        def @main(%x: T) {
          %0 = fn (%p: T)
              attributes {Composite="reference.neg_relu", PartitionedFromPattern="Neg_Relu"} {
            Relu(Neg(%p))
          };
          Exp(%0(%x))
        }
        """,
    )


def test_primitive_for_the_native_compiler() -> None:
    mod = program(CHAIN)
    (found,) = found_by(PrimitivePartitionRule(NEG_RELU), main_graph(mod), Target("cpu"))
    assert_program(
        partitioned_by(mod, [found]),
        """
        def @main(%x: T) {
          %0 = fn (%p: T) attributes {Primitive=1, global_symbol="collage_native"} { Relu(Neg(%p)) };
          Exp(%0(%x))
        }
        """,
    )


def test_primitive_for_a_toolchain_around_a_composite() -> None:
    mod = program(CHAIN)
    target = Target("cpu -toolchain=reference -threads=1")
    (found,) = found_by(PrimitivePartitionRule(COMPOSITE), main_graph(mod), target)
    assert found.name == "reference.reference.neg_relu"
    assert_program(
        partitioned_by(mod, [found]),
        """
        def @main(%x: T) {
          %0 = fn (%p: T) attributes {
            Primitive=1, Compiler="reference", global_symbol="collage_reference",
            target="cpu -toolchain=reference -threads=1"
          } {
            %1 = fn (%q: T)
                attributes {Composite="reference.neg_relu", PartitionedFromPattern="Neg_Relu"} {
              Relu(Neg(%q))
            };
            %1(%p)
          };
          Exp(%0(%x))
        }
        """,
    )


def test_neighbours_of_a_spec_can_become_one_function() -> None:
    graph = main_graph(program(CHAIN))
    first, second, _ = found_by(PrimitivePartitionRule(EachCallPartitionRule()), graph)
    union = first.sub_graph.disjoint_union(second.sub_graph)
    assert len(union.nested) == 1
    assert union.nested[0].sub_graph.inside == union.inside


def test_a_union_keeps_the_first_of_equal_candidates() -> None:
    graph = main_graph(program(CHAIN))
    found = found_by(UnionPartitionRule((RELU, NEG_RELU, EachCallPartitionRule())), graph)
    assert [one.rule_name for one in found] == ["relu", "neg_relu", "", ""]
    assert numbers(graph, found) == {(1,), (0, 1), (0,), (2,)}
    wrapped = UnionPartitionRule((NEG_RELU, COMPOSITE))
    assert len(found_by(wrapped, graph)) == 2


def test_only_valid_candidates() -> None:
    graph = main_graph(program("def @main(%x: T) { %0 = Neg(%x); %1 = Relu(%0); (%0, %1) }"))
    every = UnionPartitionRule((NEG_RELU, EachCallPartitionRule()))
    assert labels(found_by(every, graph)) == ["Neg", "Neg+Relu", "Relu"]
    assert labels(found_by(OnlyValidPartitionRule(every, SubGraphConfig()), graph)) == ["Neg", "Relu"]
    config = SubGraphConfig(max_exits=2, allow_taps=True)
    assert len(found_by(OnlyValidPartitionRule(every, config), graph)) == 3
    config = SubGraphConfig(max_exits=2, max_depth=1, allow_taps=True)
    assert len(found_by(OnlyValidPartitionRule(every, config), graph)) == 2
