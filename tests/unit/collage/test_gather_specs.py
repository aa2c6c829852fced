"""Phase 1: from targets to partition specs."""

from __future__ import annotations

import pytest
from tests.collage_programs import main_graph, program
from tests.collage_rules import labels
from tests.numpy_toolchain import NumpyToolchain

from intarsia.collage.gather_specs import GatherOptions, gather_partition_specs
from intarsia.collage.rules.registered_rule import holding_partition_rule
from intarsia.collage.rules.rule_limits import RuleLimits
from intarsia.collage.rules.segment import SegmentLimits
from intarsia.collage.rules.typical_rules import (
    FUSE_OPS_COMBINERS,
    fused_operators_rule,
    graph_style_rule,
    host_rule,
    pattern_table_rule,
    reference_rule,
    single_operators_rule,
)
from intarsia.collage.sub_graph import SubGraphConfig
from intarsia.ir import Call
from intarsia.ir.pattern import is_op, wildcard
from intarsia.op.operator_predicate import holding_operator_predicate, operator_predicate
from intarsia.op.pattern_table import CompositePattern, holding_pattern_table
from intarsia.runtime.kernel import TOOLCHAINS
from intarsia.support.errors import UsageError
from intarsia.target import Target
from intarsia.toolchain.protocol import FusionStyle

CPU, ACME = Target("cpu"), Target("cpu -toolchain=zenith")
TABLE = (CompositePattern("relu", is_op("Relu")(wildcard())),)


def supports(_: Call) -> bool:
    return True


class Zenith(NumpyToolchain):
    fusion_style = FusionStyle.OPERATOR

    def supports(self, call: Call) -> bool:
        return supports(call)


def names(*targets: Target) -> list[str]:
    return [spec.name for spec in gather_partition_specs(targets)]


def test_reference_and_host_are_always_there() -> None:
    reference, host = gather_partition_specs([])
    assert (reference.name, reference.target) == ("reference", Target("cpu -toolchain=reference"))
    assert (host.name, host.target) == ("host", CPU)
    assert (reference.rule, host.rule) == (reference_rule(), host_rule())


def test_toolchains_come_in_order_then_the_reference_then_the_host() -> None:
    targets = [
        Target("cpu -toolchain=reference -threads=1"),
        *map(Target.for_toolchain, ("openvino", "onnxruntime")),
    ]
    assert names(*targets) == ["openvino", "onnxruntime", "reference", "host"]
    specs = gather_partition_specs(targets)
    assert specs[2].target == Target("cpu -toolchain=reference -threads=1")


def test_a_pattern_table_comes_before_a_predicate() -> None:
    with holding_operator_predicate("zenith", supports), holding_pattern_table("zenith", TABLE):
        (_, spec, *_) = gather_partition_specs([CPU, ACME])
    assert (spec.name, spec.target) == ("zenith", ACME)
    assert spec.rule == pattern_table_rule("zenith", TABLE)


@pytest.mark.parametrize("style", FusionStyle)
def test_fusion_styles(style: FusionStyle) -> None:
    options = GatherOptions(
        RuleLimits(SubGraphConfig(max_depth=3)), SegmentLimits(max_cuts=9), {"zenith": style}
    )
    limits = options.limits
    with holding_operator_predicate("zenith", supports):
        (spec, *_) = gather_partition_specs([ACME], options)
    assert (
        spec.rule
        == {
            FusionStyle.NONE: single_operators_rule(supports),
            FusionStyle.OPERATOR: fused_operators_rule(supports, limits),
            FusionStyle.GRAPH: graph_style_rule(supports, limits, options.segments),
        }[style]
    )
    with holding_operator_predicate("zenith", supports), holding_pattern_table("zenith", TABLE):
        (spec, *_) = gather_partition_specs([ACME], options)
    graph = main_graph(program("def @main(%x: T) { Relu(Relu(%x)) }"))
    expected = ["Relu", "Relu"] if style is FusionStyle.NONE else ["Relu", "Relu", "Relu+Relu"]
    assert labels(spec.candidates(graph)) == expected


def test_the_toolchain_says_its_style() -> None:
    with TOOLCHAINS.holding("zenith", Zenith), holding_operator_predicate("zenith", supports):
        (spec, *_) = gather_partition_specs([ACME])
        assert spec.rule == fused_operators_rule(supports)
        with holding_pattern_table("zenith", TABLE):
            (spec, *_) = gather_partition_specs([ACME])
            assert spec.rule == pattern_table_rule("zenith", TABLE, combiners=FUSE_OPS_COMBINERS)
    (spec, *_) = gather_partition_specs([Target("cpu -toolchain=onnxruntime")])
    graph = main_graph(program("def @main(%x: T) { Relu(Softmax(Neg(%x))) }"))
    assert "Neg+Softmax+Relu" in labels(spec.candidates(graph))


def test_a_target_names_its_rule() -> None:
    graph = main_graph(program("def @main(%x: T) { Relu(Neg(%x)) }"))
    with holding_operator_predicate("zenith", supports), holding_pattern_table("zenith", TABLE):
        target = Target("cpu -toolchain=zenith -partition_rule=operator_predicate -threads=2")
        (spec, *_) = gather_partition_specs([target])
    assert spec.target == Target("cpu -toolchain=zenith -threads=2")
    assert labels(spec.candidates(graph)) == ["Neg", "Neg+Relu", "Relu"]
    with holding_partition_rule("mine", lambda target, limits: reference_rule()):
        (spec, *_) = gather_partition_specs([Target("cpu -partition_rule=mine")])
    assert (spec.name, spec.target, spec.rule) == ("native", CPU, reference_rule())


def test_a_plain_target_is_the_native_compiler_if_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert names(CPU) == ["native", "reference", "host"]
    with TOOLCHAINS.holding("native", Zenith), holding_operator_predicate("native", supports):
        (spec, *_) = gather_partition_specs([Target("cpu -threads=2")])
    assert (spec.name, spec.target) == ("native", Target("cpu -toolchain=native -threads=2"))
    assert spec.rule == fused_operators_rule(supports)
    others = {name: point for name, point in TOOLCHAINS._points().items() if name != "native"}
    monkeypatch.setattr(TOOLCHAINS, "_values", {})
    monkeypatch.setattr(TOOLCHAINS, "_entry_points", others)
    assert names(CPU) == ["reference", "host"]


def test_one_toolchain_with_different_options() -> None:
    texts = ["cpu -toolchain=openvino", "cpu -toolchain=openvino -threads=1"]
    assert names(*map(Target, texts)) == [*texts, "reference", "host"]
    with pytest.raises(UsageError, match="is given twice"):
        gather_partition_specs([ACME, ACME])


def test_unknown_names() -> None:
    with pytest.raises(UsageError, match="unknown toolchain 'openvin'"):
        gather_partition_specs([Target("cpu -toolchain=openvin")])
    with pytest.raises(UsageError, match="unknown partition rule 'x'"):
        gather_partition_specs([Target("cpu -toolchain=openvino -partition_rule=x")])


def test_real_predicates_decide() -> None:
    graph = main_graph(program("def @main(%x: T) { BitCast(BitCast(Neg(%x), to=6), to=1) }"))
    (spec, *_) = gather_partition_specs([Target("cpu -toolchain=openvino")])
    assert labels(spec.candidates(graph)) == ["Neg"]
    assert operator_predicate("openvino")(graph[len(graph) - 1].expr) is False  # type: ignore[arg-type]  # it is the call


def test_toolchains_that_are_registered_in_code() -> None:
    """No package announces it: its class is asked what it supports."""
    with TOOLCHAINS.holding("zenith", Zenith):
        (spec, *_) = gather_partition_specs([ACME])
    graph = main_graph(program("def @main(%x: T) { Relu(Relu(%x)) }"))
    assert labels(spec.candidates(graph)) == ["Relu", "Relu", "Relu+Relu"]
