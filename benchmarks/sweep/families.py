"""The families of layers, and the draw of a sweep."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from benchmarks.sweep import convolutions, movement, products, rowwise
from benchmarks.sweep.case import Case, Sizes, Value
from benchmarks.sweep.sequence_blocks import SEQUENCE_BLOCKS
from benchmarks.sweep.vision_blocks import VISION_BLOCKS
from benchmarks.sweep.writer import Layer, LayerWriter

BLOCK: Final = "block"
"""Family of whole blocks, which are drawn apart from the layers."""
BLOCKS: Final = {**VISION_BLOCKS, **SEQUENCE_BLOCKS}
_BLOCK_STREAM: Final = 1 << 20
"""Number of the first stream of random numbers for blocks; layers have those below."""

SHORTEST: Final = 0.05e-3
LONGEST: Final = 60e-3
"""Seconds between which one call of a drawn layer is estimated to take."""
_OPERATIONS_PER_SECOND: Final = 1e11
_BYTES_PER_SECOND: Final = 1e10
"""Rates of two cores of a server CPU of 2021; constants, so that a seed gives the same layers everywhere."""
_MOST_BYTES: Final = 1 << 28
"""Bytes of the weights, or of the inputs and results, of a drawn layer."""
_ATTEMPTS: Final = 1000


@dataclass(frozen=True)
class Family:
    """A family of layers.

    Attributes:
        share: Relative frequency in a sweep.
        draw: Function that draws the parameters of a layer.
        write: Function that writes a layer as a model.
        properties: Function that returns what may make a layer slow, most specific first.
    """

    share: float
    draw: Callable[[Sizes], dict[str, Value]]
    write: Callable[[Case], Layer]
    properties: Callable[[Case], list[str]]


def _draw_block(sizes: Sizes, name: str | None = None) -> dict[str, Value]:
    name = name or sizes.choose(tuple(BLOCKS))
    return {"of": name, "n": sizes.choose((1, 2, 4, 8), (6, 1, 2, 1)), "shape": sizes.choose(BLOCKS[name][1])}


def _write_block(case: Case) -> Layer:
    net = LayerWriter()
    write, _ = BLOCKS[case.word("of")]
    return net.finish(write(net, net.input((case.count("n"), *case.counts("shape")))))


def _block_properties(case: Case) -> list[str]:
    return [case.word("of"), *["batch"] * (case.count("n") > 1)]


def _convolution(share: float, draw: Callable[[Sizes], dict[str, Value]]) -> Family:
    return Family(share, draw, convolutions.write_convolution, convolutions.properties)


FAMILIES: Final[Mapping[str, Family]] = {
    "dense": _convolution(12, convolutions.draw_dense),
    "pointwise": _convolution(6, convolutions.draw_pointwise),
    "grouped": _convolution(7, convolutions.draw_grouped),
    "depthwise": _convolution(8, convolutions.draw_depthwise),
    "dilated": _convolution(7, convolutions.draw_dilated),
    "transposed": _convolution(5, convolutions.draw_transposed),
    "product": Family(
        11, products.draw_constant_product, products.write_constant_product, products.product_properties
    ),
    "variable-product": Family(
        6, products.draw_variable_product, products.write_variable_product, products.product_properties
    ),
    "attention": Family(5, products.draw_attention, products.write_attention, products.attention_properties),
    "recurrent": Family(2, products.draw_recurrent, products.write_recurrent, products.recurrent_properties),
    "norm": Family(6, rowwise.draw_norm, rowwise.write_norm, rowwise.norm_properties),
    "softmax": Family(3, rowwise.draw_softmax, rowwise.write_softmax, rowwise.axis_properties),
    "scan": Family(1, rowwise.draw_scan, rowwise.write_scan, rowwise.axis_properties),
    "reduction": Family(4, rowwise.draw_reduction, rowwise.write_reduction, rowwise.reduction_properties),
    "pool": Family(4, rowwise.draw_pool, rowwise.write_pool, rowwise.pool_properties),
    "elementwise": Family(
        4, movement.draw_elementwise, movement.write_elementwise, movement.elementwise_properties
    ),
    "gather": Family(2, movement.draw_gather, movement.write_gather, movement.gather_properties),
    "resize": Family(2, movement.draw_resize, movement.write_resize, movement.resize_properties),
    "movement": Family(5, movement.draw_movement, movement.write_movement, movement.movement_properties),
    BLOCK: Family(0, _draw_block, _write_block, _block_properties),
}


def write_layer(case: Case) -> Layer:
    """Write the layer of a case."""
    return FAMILIES[case.family].write(case)


def properties_of(case: Case) -> list[str]:
    """Return what may make a layer slow, most specific first."""
    return FAMILIES[case.family].properties(case)


def draw_layers(seed: int, layers: int, blocks: int) -> list[Case]:
    """Draw the layers and blocks of a sweep; the first ones of a longer sweep are the same.

    Args:
        seed: Seed of the draws.
        layers: Number of layers.
        blocks: Number of blocks, each of another architecture while there are any.
    """
    drawn = [_draw_case(np.random.default_rng([seed, number])) for number in range(layers)]
    names = np.random.default_rng([seed, _BLOCK_STREAM - 1]).permutation(list(BLOCKS))
    for number in range(blocks):
        generator = np.random.default_rng([seed, _BLOCK_STREAM + number])
        drawn.append(_draw_within(generator, BLOCK, str(names[number % len(names)])))
    return drawn


def _draw_case(generator: np.random.Generator) -> Case:
    names = [name for name in FAMILIES if name != BLOCK]
    return _draw_within(generator, Sizes(generator).choose(names, [FAMILIES[name].share for name in names]))


def _draw_within(generator: np.random.Generator, family: str, block: str | None = None) -> Case:
    """Draw a layer of a family until one has a size within the bounds."""
    sizes = Sizes(generator)
    for _ in range(_ATTEMPTS):
        case = Case(family, _draw_block(sizes, block) if block else FAMILIES[family].draw(sizes))
        try:
            layer = write_layer(case)
        except Exception:  # onnx refuses sizes in errors of many classes
            continue
        if SHORTEST <= estimate_seconds(layer) <= LONGEST and layer.bytes <= _MOST_BYTES:
            return case
    raise ValueError(f"no layer of the family {family} has a size within the bounds")


def estimate_seconds(layer: Layer) -> float:
    """Return a rough estimate of the seconds per call, the same on every machine."""
    moved = layer.bytes + layer.passes / 2
    return layer.operations / _OPERATIONS_PER_SECOND + moved / _BYTES_PER_SECOND
