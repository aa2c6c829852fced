"""Layers of a seed: the same each time, valid, and readable from their texts."""

from __future__ import annotations

from functools import cache

import numpy as np
import onnx
import onnx.reference
import pytest
from benchmarks.sweep.case import Case, Sizes
from benchmarks.sweep.families import (
    BLOCK,
    BLOCKS,
    FAMILIES,
    LONGEST,
    SHORTEST,
    draw_layers,
    estimate_seconds,
    properties_of,
    write_layer,
)
from benchmarks.sweep.writer import Layer, LayerWriter
from onnx import TensorProto, helper

LAYERS = 150


@cache
def drawn() -> tuple[Case, ...]:
    return tuple(draw_layers(1, LAYERS, len(BLOCKS)))


def check_graph(layer: Layer) -> onnx.ModelProto:
    """Check the graph of a layer with its weights as inputs, which need no data."""
    model = onnx.ModelProto()
    model.CopyFrom(layer.graph)
    for weight in layer.weights:
        model.graph.input.append(helper.make_tensor_value_info(weight.name, TensorProto.FLOAT, weight.shape))
    onnx.checker.check_model(model, full_check=True)
    return onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)


def test_a_seed_gives_the_same_layers_each_time() -> None:
    assert draw_layers(1, 20, 5) == draw_layers(1, 20, 5)


def test_the_first_layers_of_a_longer_sweep_are_the_same() -> None:
    assert draw_layers(1, 10, 2) == [*drawn()[:10], *drawn()[LAYERS : LAYERS + 2]]


def test_seeds_give_different_layers() -> None:
    assert not {case.text for case in draw_layers(4, 20, 0)} & {case.text for case in drawn()}


def test_all_families_and_architectures_are_drawn() -> None:
    assert {case.family for case in drawn()} == set(FAMILIES)
    assert {case.word("of") for case in drawn() if case.family == BLOCK} == set(BLOCKS)
    assert len(BLOCKS) >= 40


@pytest.mark.parametrize("family", FAMILIES)
def test_layers_are_valid_and_of_bounded_size(family: str) -> None:
    for case in [case for case in drawn() if case.family == family]:
        layer = write_layer(case)
        inferred = check_graph(layer)
        assert SHORTEST <= estimate_seconds(layer) <= LONGEST
        for result in inferred.graph.output:
            dims = [dim.dim_value for dim in result.type.tensor_type.shape.dim]
            assert all(dim > 0 for dim in dims), case.text


def test_texts_give_the_cases_back() -> None:
    for case in drawn():
        assert Case.parse(case.text) == case
        assert properties_of(Case.parse(case.text)) == properties_of(case)


def test_a_text_without_values_is_refused() -> None:
    with pytest.raises(ValueError, match="NAME=VALUE"):
        Case.parse("dense 3")


def test_a_layer_runs_and_is_the_same_each_time() -> None:
    layer = write_layer(Case.parse("product n=1 m=3 k=5 cols=7 as=gemm-tb then=gelu"))
    evaluator = onnx.reference.ReferenceEvaluator(layer.model())
    (result,) = evaluator.run(None, layer.arrays())
    assert np.asarray(result).shape == (3, 7)
    assert layer.model() == layer.model()
    assert np.array_equal(layer.arrays()["x0"], layer.arrays()["x0"])


def test_operations_and_bytes_are_counted() -> None:
    layer = write_layer(
        Case.parse(
            "grouped n=2 c=8 k=6 image=10,10 window=3,3 stride=1 dilation=1 pads=1,1,1,1 groups=2 then=bias"
        )
    )
    assert layer.operations == 2 * (2 * 6 * 100) * (4 * 9)
    assert layer.bytes == 4 * (2 * 8 * 100 + 6 * 4 * 9 + 6 + 2 * 6 * 100)


def test_of_a_table_only_what_is_gathered_counts() -> None:
    layer = write_layer(Case.parse("gather op=rows table=1000 width=16 count=10 then=none"))
    assert layer.bytes == 2 * 4 * 10 * 16 + 8 * 10


def test_a_node_without_result_elements_is_refused() -> None:
    net = LayerWriter()
    with pytest.raises(ValueError, match="empty"):
        net.node("Slice", net.input((4,)), net.constant([2]), net.constant([2]), net.constant([0]))


def test_sizes_stay_within_their_bounds() -> None:
    sizes = Sizes(np.random.default_rng(0))
    drawn_sizes = [sizes.between(1, 8) for _ in range(200)]
    assert set(drawn_sizes) == set(range(1, 9))
    assert all(7 <= sizes.side() <= 640 for _ in range(200))
    assert all(3 <= sizes.channels(512) <= 512 for _ in range(200))


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (
            "dilated c=16 k=16 image=16,16 dilation=24 pads=24,24,24,24 groups=1",
            "window reads mostly padding",
        ),
        ("dilated c=16 k=16 image=96,96 dilation=2 pads=2,2,2,2 groups=16", "depthwise with dilation"),
        ("grouped c=16 k=16 image=56,56 dilation=1 pads=1,1,1,1 groups=4", "groups of under 16 channels"),
        (
            "grouped c=96 k=96 image=56,56 dilation=1 pads=1,1,1,1 groups=4",
            "groups of no multiple of 16 channels",
        ),
        ("dense c=64 k=64 image=56,56 dilation=1 pads=0,0,1,1 groups=1", "asymmetric padding"),
        ("dense c=64 k=64 image=56,56 dilation=1 pads=1,1,1,1 groups=1", "then relu"),
    ],
)
def test_the_cause_of_a_convolution_is_its_most_specific_property(text: str, cause: str) -> None:
    case = Case.parse(f"{text} n=1 window=3,3 stride=1 then=relu")
    assert properties_of(case)[0] == cause


def test_a_window_that_its_image_does_not_hold_is_not_drawn() -> None:
    text = "dilated n=1 c=4 k=4 image=7,7 window=3,3 stride=2 dilation=4 pads=1,1,0,8 groups=1 then=none"
    with pytest.raises(ValueError, match="does not hold"):
        write_layer(Case.parse(text))
