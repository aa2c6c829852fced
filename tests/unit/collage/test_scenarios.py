"""The scenarios that Collage is known by, searched with mock costs, on our operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from tests.collage_costs import HOST_SPEC, acme, native, parts, spec
from tests.collage_programs import main_graph, program
from tests.mock_cost_estimator import MockCostEstimator

from intarsia.collage.candidates.candidate_partition import CandidatePartition, PartitionSpec
from intarsia.collage.candidates.cost import Cost
from intarsia.collage.collage import CollageResult, collage
from intarsia.collage.prune import collect_candidates
from intarsia.collage.rules.typical_rules import graph_style_rule
from intarsia.collage.sub_graph import extract_function
from intarsia.ir import TensorType
from intarsia.op import verify
from intarsia.support.errors import UsageError

RELUS = "def @main(%x: T) { Relu(Relu(Relu(%x))) }"


def found(
    text: str, costs: Mapping[str, float], specs: Sequence[PartitionSpec] = (native(), acme())
) -> CollageResult:
    """The result for a program; its best placement is applied and verified along the way."""
    mod = program(text)
    result = collage(mod, (*specs, HOST_SPEC), MockCostEstimator(costs))
    verify(result.best.applied(mod))
    assert result.functions[0].is_exact
    return result


def chosen(
    text: str, costs: Mapping[str, float], specs: Sequence[PartitionSpec] = (native(), acme())
) -> list[tuple[str, str]]:
    return parts(found(text, costs, specs).best.partitions)


class TestSingleOperator:
    TEXT = "def @main(%x: T) { Relu(%x) }"

    def test_native_is_cheaper(self) -> None:
        assert chosen(self.TEXT, {"native": 1, "acme": 2}) == [("native", "Relu")]

    def test_the_other_toolchain_is_cheaper(self) -> None:
        result = found(self.TEXT, {"native": 2, "acme": 1})
        (only,) = result.best.partitions
        assert (only.toolchain, [each.name for each in only.composites]) == ("acme", ["acme.relu"])
        assert result.placements[0].seconds == pytest.approx(1)


@pytest.mark.parametrize(
    ("depth", "expected"),
    [
        (1, [("acme", "Relu"), ("native", "Abs"), ("acme", "Relu"), ("acme", "Add")]),
        (3, [("acme", "Relu"), ("native", "Abs"), ("acme", "Relu+Add")]),
    ],
)
def test_diamond_of_valid_topology(depth: int, expected: list[tuple[str, str]]) -> None:
    """The Add may join the second Relu; the first cannot, or Abs would be called in their middle."""
    text = "def @main(%x: T) { %0 = Relu(%x); %1 = Abs(%0); %2 = Relu(%1); Add(%0, %2) }"
    assert chosen(text, {"native": 2, "acme": 1}, (native(), acme(depth))) == expected


@pytest.mark.parametrize(("fusing", "other"), [("native", "acme"), ("acme", "native")])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_depth_decides_who_wins(fusing: str, other: str, depth: int) -> None:
    """An operator costs 100 where fusing is allowed, 99 where it is not: fusing wins as it may go deeper."""
    depths = {fusing: depth, other: 1}
    specs = (native(depths["native"]), acme(depths["acme"]))
    result = found(RELUS, {fusing: 100, other: 99}, specs)
    found_parts = sorted(parts(result.best.partitions))
    assert found_parts == sorted(
        {
            1: [(other, "Relu")] * 3,
            2: [(other, "Relu"), (fusing, "Relu+Relu")],
            3: [(fusing, "Relu+Relu+Relu")],
        }[depth]
    )
    assert result.placements[0].seconds == pytest.approx({1: 297, 2: 289, 3: 271}[depth])


def test_output_tuple() -> None:
    """The tuple of results stays on the host; what makes them may be one function of several results."""
    text = "def @main(%x: T) { %0 = Relu(%x); (%0, Add(%0, %x), Abs(%0)) }"
    costs = {"native": 2, "acme": 1}
    assert chosen(text, costs) == [("acme", "Relu"), ("acme", "Add"), ("native", "Abs")]
    both = chosen(text, costs, (native(), acme(max_exits=2)))
    assert both == [("acme", "Relu+Add"), ("native", "Abs")]


def test_intermediate_tuple() -> None:
    """A tuple between operators costs nothing, and belongs to nobody."""
    text = "def @main(%x: T) { %0 = (Relu(%x), Abs(%x)); Add(%0.0, %0.1) }"
    result = found(text, {"native": 3, "acme": 1}, (native(1), acme(1)))
    assert parts(result.best.partitions) == [("acme", "Relu"), ("native", "Abs"), ("acme", "Add")]
    assert result.placements[0].seconds == pytest.approx(5)
    after = str(result.best.applied(program(text)))
    assert after.count("acme_Relu") >= 2


def test_benefit_of_fusion() -> None:
    """Native operators cost 6, the others 5; five of them fused are cheaper than mixing."""
    text = "def @main(%x: T) { Relu(Abs(Relu(Abs(Relu(%x))))) }"
    result = found(text, {"native": 6, "acme": 5})
    assert parts(result.best.partitions) == [("native", "Relu+Abs+Relu+Abs+Relu")]
    assert result.placements[0].seconds == pytest.approx(6 * (1 - 0.9**5) / 0.1)
    assert result.placements[0].seconds < 3 * 5 + 2 * 6
    alone = chosen(text, {"native": 6, "acme": 5}, (native(1), acme(1)))
    assert [name for name, _ in alone] == ["acme", "native", "acme", "native", "acme"]


def test_double_residual() -> None:
    """Two shortcuts over the same operators: one function takes all of it, with one result."""
    text = """def @main(%x: T) {
        %0 = Abs(%x); %1 = Relu(%0); %2 = Add(%0, %1); Add(%0, %2)
    }"""
    assert chosen(text, {"native": 2, "acme": 1}) == [("native", "Abs"), ("acme", "Relu+Add+Add")]
    only_abs = chosen(text, {"native": 1, "acme": 5})
    assert only_abs == [("native", "Abs+Relu+Add+Add")]


def test_few_candidates_are_estimated() -> None:
    """In place of pruning: once the whole is known to be cheaper than others can be, the search ends.

    Of hundreds of candidates four are estimated, the whole and one operator for each toolchain.
    """
    steps = "; ".join(f"%{number} = Conv(%{number - 1 if number else 'x'}, %w)" for number in range(20))
    types = "%x: Tensor[(1, 4, 6, 6), float32], %w: Tensor[(4, 4, 1, 1), float32]"
    mod = program(f"def @main({types}) {{ {steps}; Conv(%19, %w) }}")
    specs = tuple(spec(name, graph_style_rule(lambda _: True)) for name in ("native", "acme"))
    costs = {"native": 1, "acme": 2}
    result = collage(mod, (*specs, HOST_SPEC), MockCostEstimator(costs, max_estimates=4))
    ((toolchain, label),) = parts(result.best.partitions)
    assert (toolchain, label.count("Conv")) == ("native", 21)
    assert len(result.functions[0].candidates) > 400
    with pytest.raises(UsageError, match="more than 3 estimates were asked for"):
        collage(mod, (*specs, HOST_SPEC), MockCostEstimator(costs, max_estimates=3))


def candidates_of(text: str, asked: PartitionSpec) -> list[CandidatePartition]:
    return list(collect_candidates(main_graph(program(text)), [asked]).candidates)


class TestEstimateCost:
    def test_simple(self) -> None:
        whole = next(
            each
            for each in candidates_of("def @main(%x: T) { Relu(Relu(%x)) }", native())
            if each.sub_graph.depth == 2
        )
        (estimate,) = MockCostEstimator({"native": 3}).estimate([whole])
        assert estimate.cost.seconds == pytest.approx(5.7)
        assert (estimate.low, estimate.high) == (estimate.cost.seconds, estimate.cost.seconds)

    def test_already_known(self) -> None:
        candidates = candidates_of(RELUS, native(1))
        estimator = MockCostEstimator({"native": 3}, max_estimates=1)
        first, second = (estimator.estimate(candidates) for _ in range(2))
        assert first == second
        assert estimator.estimates == 1

    def test_invalid(self) -> None:
        (estimate,) = MockCostEstimator({"acme": 1}).estimate(
            candidates_of("def @main(%x: T) { Relu(%x) }", native())
        )
        assert estimate.cost == Cost.INVALID
        assert estimate.message == "the spec has no mock cost"

    def test_equal_structures_are_estimated_once(self) -> None:
        text = "def @main(%x: T, %y: T) { Abs(Abs(Add(Relu(Abs(%x)), Relu(Abs(%y))))) }"
        pairs = [
            each for each in candidates_of(text, native(2)) if each.sub_graph.label in ("Abs+Relu", "Abs+Abs")
        ]
        assert len(pairs) == 3
        estimator = MockCostEstimator({"native": 1})
        estimator.estimate(pairs)
        assert estimator.estimates == 2

    def test_a_toolchain_does_not_get_another_ones_cost(self) -> None:
        candidates = [each for own in (native(1), acme(1)) for each in candidates_of(RELUS, own)[:1]]
        costs = [
            each.cost.seconds for each in MockCostEstimator({"native": 2.0, "acme": 3.0}).estimate(candidates)
        ]
        assert costs == [2.0, 3.0]

    def test_tuple_arguments_become_parameters(self) -> None:
        text = "def @main(%x: (T, T)) { Add(%x.0, %x.1) }".replace(
            "(T, T)", "(Tensor[(2,), float32], Tensor[(2,), float32])"
        )
        (add,) = candidates_of(text, acme())
        function = extract_function(add.sub_graph)
        assert [type(param.checked_type) for param in function.params] == [TensorType, TensorType]
        (estimate,) = MockCostEstimator({"acme": 4}).estimate([add])
        assert estimate.cost == Cost.value(4)
