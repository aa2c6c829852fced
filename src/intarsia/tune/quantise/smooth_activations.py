"""Ranges of activations and weights evened out before quantisation, from calibration inputs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.ir import Call, IRModule, TensorType
from intarsia.measure.inputs import random_inputs
from intarsia.measure.judge.exposed_program import exposing
from intarsia.passes.quantise.channel_scaling import (
    LARGEST_EXPONENT,
    ScalableValue,
    computing_layer,
    scalable_values,
    with_scaled_channels,
)
from intarsia.passes.quantise.heavy_layer import is_annotation, is_float32, top_level
from intarsia.passes.quantise.weight_channels import input_ranges, output_factor
from intarsia.support.errors import UsageError
from intarsia.support.json_text import parse_json_text
from intarsia.transform import DiagnosticLevel, ModulePass, PassContext, register_pass
from intarsia.tune.quantise.calibration_inputs import read_calibration
from intarsia.tune.quantise.observation import InputSets
from intarsia.tune.quantise.program_runner import running_program

Array = npt.NDArray[Any]
Exponents = Mapping[int, Sequence[int]]
"""Exponents for each channel of a value, by the least number of a layer that reads it."""

RANDOM_SETS: Final = 4
"""Number of random input sets where no calibration inputs are given."""

OUTLIERS: Final = 8.0
"""Ratio of the largest to the median range of channels from which a multiplication of its own is worth it.

The channels with outliers that SmoothQuant is about have 20 to 100 times the range of others."""


@register_pass
@dataclass(frozen=True)
class SmoothActivations(ModulePass, opt_level=0, required=("InferType",)):
    """Moves the range of channels of activations into the weights that read them, before quantisation.

    In transformers a few channels behind normalisations have ranges many times that of the others, so that
    one scale for all leaves these with few of the 256 steps. Channels are divided by powers of two, and the
    rows of the weights multiplied; the program computes the same bits. The exponent of a channel is that of

        max |x| ** alpha / max |w| ** (1 - alpha),

    rounded, over all layers that read the value. The factors go into the normalisation, product or layer that
    computes the value. Where other operators read it as well, as behind the normalisations of BERT, a
    multiplication in front of the layers takes them, if there are channels with outliers.

    The ranges are those on calibration inputs. A program with annotations stays as it is:
    `AnnotateQuantization` comes after this.

    Source: G. Xiao et al., "SmoothQuant: Accurate and Efficient Post-Training Quantization for Large Language
    Models", 2023, equation 4, with powers of two.

    Attributes:
        inputs: FILE.npz or a folder of such files (see `calibration_inputs`); random inputs if empty, then a
            program of symbolic shapes stays as it is.
        alpha: Share of the range that weights take, from 0 to 1.
        inserts: Whether multiplications may be added.
        seed: Random seed of random inputs.
        record: Exponents as `smoothing_record` returns them for this program; then nothing is run.

    Raises:
        UsageError: alpha is out of range, the inputs cannot be read, or the record is malformed or of another
            program.
        ExecutionError: No toolchain runs the program.

    Before:
        def @main(%x: Tensor[(1, 2), float32]) {
          MatMul(Mul(%x, meta[Constant][0]), meta[Constant][1])
        }
    After:
        def @main(%x: Tensor[(1, 2), float32]) {
          MatMul(Mul(%x, meta[Constant][2]), meta[Constant][3])
        }
    Constants:
        [512.0, 1.0] ones(2, 1) [128.0, 4.0] [[4.0], [0.25]]
    """

    inputs: str = ""
    alpha: float = 0.5
    inserts: bool = True
    seed: int = 0
    record: str = ""

    def __post_init__(self) -> None:
        """Check the options."""
        if not 0 <= self.alpha <= 1:
            raise UsageError(f"alpha is {self.alpha}, expected a number from 0 to 1")
        if self.record:
            read_exponents(self.record)

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """The module with smoothed activations in @main."""
        if "main" not in mod or any(map(is_annotation, top_level(mod["main"].body))):
            return mod
        if not (self.record or self.inputs or _is_static(mod)):
            message = "is not smoothed: random inputs need static shapes"
            ctx.diagnose(mod["main"], DiagnosticLevel.MISSED, message, [])
            return mod
        if self.record:
            exponents = read_exponents(self.record)
            _check(exponents, scalable_values(mod["main"].body))
        else:
            exponents = smoothing_exponents(mod, self._inputs(mod, ctx), self.alpha, inserts=self.inserts)
        main = mod["main"]
        after = with_scaled_channels(main, exponents)
        return mod if after is main else mod.with_function("main", after)

    def _inputs(self, mod: IRModule, ctx: PassContext) -> InputSets:
        if self.inputs:
            return read_calibration(Path(self.inputs), mod["main"]).inputs
        message = "smoothed by random inputs: exponents fit no real data"
        ctx.diagnose(mod["main"], DiagnosticLevel.MISSED, message, [])
        return [random_inputs(mod["main"], self.seed + number) for number in range(RANDOM_SETS)]


def _is_static(mod: IRModule) -> bool:
    types = [param.checked_type for param in mod["main"].params]
    return all(isinstance(type_, TensorType) and type_.is_static for type_ in types)


def smoothing_exponents(
    mod: IRModule, inputs: InputSets, alpha: float = 0.5, *, inserts: bool = True
) -> dict[int, list[int]]:
    """Run a program on input sets, and return the exponents for its values, without those that are all 0.

    Args:
        mod: Program without annotations.
        inputs: Input sets, by parameter name.
        alpha: Share of the range that weights take.
        inserts: Whether values count that only multiplications of their own can scale.

    Raises:
        UsageError: There is no input set.
        ExecutionError: No toolchain runs the program.
    """
    if not inputs:
        raise UsageError("there are no calibration inputs")
    values = [
        value
        for value in scalable_values(mod["main"].body)
        if is_float32(value.value) and (value.absorbing or inserts)
    ]
    if not values:
        return {}
    sizes: dict[Call, Array] = {}
    exponents: dict[int, list[int]] = {}
    # Backwards: factors of a value change the weights of the layer that computes it, which are those that an
    # earlier value is weighed against.
    for value, ranges in reversed(list(zip(values, _channel_ranges(mod, values, inputs), strict=True))):
        is_even = ranges.max(initial=0.0) < OUTLIERS * float(np.median(ranges))
        if not np.isfinite(ranges).all() or (not value.absorbing and is_even):
            continue
        for layer in value.readers:
            sizes.setdefault(layer.call, np.abs(layer.weight.data))
        powers = _exponents(value, ranges, sizes, alpha)
        if powers.any():
            exponents[value.number] = powers.tolist()
            _scale_computing_layer(value, sizes, powers)
    return dict(sorted(exponents.items()))


def _scale_computing_layer(value: ScalableValue, sizes: dict[Call, Array], powers: Array) -> None:
    layer = computing_layer(value)
    if layer is not None:
        before = sizes.get(layer.call, np.abs(layer.weight.data))
        sizes[layer.call] = before * output_factor(layer, np.ldexp(np.float32(1), -powers))


def _channel_ranges(mod: IRModule, values: Sequence[ScalableValue], inputs: InputSets) -> list[Array]:
    """Return the largest magnitude of each channel of values on input sets."""
    ranges = [np.zeros(value.channels, np.float32) for value in values]
    with running_program(exposing(mod, [value.value for value in values])) as run:
        for arrays in inputs:
            outputs = run(arrays)
            exposed = outputs[len(outputs) - len(values) :]
            for number, (value, array) in enumerate(zip(values, exposed, strict=True)):
                others = tuple(axis for axis in range(array.ndim) if axis != array.ndim + value.axis)
                ranges[number] = np.maximum(ranges[number], np.abs(array).max(axis=others, initial=0))
    return ranges


def _exponents(value: ScalableValue, ranges: Array, sizes: Mapping[Call, Array], alpha: float) -> Array:
    """Return the exponent of each channel of a value.

    Args:
        value: The value.
        ranges: Largest magnitude of each of its channels.
        sizes: Magnitudes of the weights of layers.
        alpha: Share of the range that weights take.
    """
    weights = np.max([input_ranges(layer, sizes[layer.call]) for layer in value.readers], axis=0)
    is_used = (ranges > 0) & (weights > 0)
    if not is_used.any():
        return np.zeros(len(ranges), np.int32)
    logarithms = np.zeros((2, len(ranges)))
    np.log2(ranges, out=logarithms[0], where=is_used)
    np.log2(weights, out=logarithms[1], where=is_used)
    powers = np.rint(alpha * logarithms[0] - (1 - alpha) * logarithms[1])
    # A common factor changes nothing: with the median at 0 most channels stay as they are.
    powers = np.where(is_used, powers - np.rint(np.median(powers[is_used])), 0)
    clipped: Array = np.clip(powers, -LARGEST_EXPONENT, LARGEST_EXPONENT).astype(np.int32)
    return clipped


def smoothing_record(exponents: Exponents) -> str:
    """Return exponents as text, for the option `record` of `SmoothActivations`."""
    return json.dumps(
        {str(number): list(powers) for number, powers in exponents.items()}, separators=(",", ":")
    )


def read_exponents(record: str) -> dict[int, list[int]]:
    """Return the exponents that a text holds.

    Raises:
        UsageError: The text is something else than what `smoothing_record` returns.
    """
    try:
        data = parse_json_text(record)
        exponents = {int(number): [int(power) for power in powers] for number, powers in data.items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise UsageError(
            f"a record of smoothed activations is malformed: {error}",
            help='it is what smoothing_record returns, such as {"0":[3,0,-1]}',
        ) from None
    largest = max((abs(power) for powers in exponents.values() for power in powers), default=0)
    if largest > LARGEST_EXPONENT:
        raise UsageError(
            f"a record of smoothed activations has the exponent {largest}, "
            f"expected at most {LARGEST_EXPONENT}"
        )
    return exponents


def _check(exponents: Exponents, values: Sequence[ScalableValue]) -> None:
    channels = {value.number: value.channels for value in values}
    for number, powers in exponents.items():
        if channels.get(number) != len(powers):
            raise UsageError(
                f"the record of smoothed activations has {len(powers)} channels of layer {number}, "
                f"the program {channels.get(number, 'no such layer')}",
                help="smooth the program as it is now",
            )
