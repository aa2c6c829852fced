"""Scales for annotated values, from the values that a program computes on calibration inputs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from weakref import WeakKeyDictionary

import numpy as np

from intarsia.ir import (
    Call,
    Constant,
    Expr,
    IRModule,
    post_order,
    with_children,
    with_fields,
)
from intarsia.ir.traversal import children
from intarsia.measure.inputs import random_inputs
from intarsia.passes.quantise.heavy_layer import is_annotation, top_level
from intarsia.passes.quantise.integer_values import is_moved
from intarsia.support.errors import UsageError
from intarsia.transform import DiagnosticLevel, ModulePass, PassContext, register_pass
from intarsia.tune.quantise.calibration_inputs import read_calibration
from intarsia.tune.quantise.calibration_record import CalibrationRecord
from intarsia.tune.quantise.calibrators import Array, check_method, scale_and_zero_point, weight_scale
from intarsia.tune.quantise.observation import InputSets, key_of, observe

_weight_scales: WeakKeyDictionary[Constant, dict[tuple[int, str], Array]] = WeakKeyDictionary()
"""Scales of weights, by axis and calibrator: a search tries many sets of layers of the same weights."""

RANDOM_SETS = 4
"""Number of random input sets where no calibration inputs are given."""


@register_pass
@dataclass(frozen=True)
class CalibrateQuantization(ModulePass, opt_level=0, required=("InferType",)):
    """Gives scales and zero points to the marks of `AnnotateQuantization`.

    The program runs once on each of the calibration inputs, by the first toolchain that can, and a calibrator
    turns what is observed of each marked value into a range. The scale is a 255th of the range, and 0 is
    represented exactly. Weights get a scale for each output channel from their values. Inputs of layers also
    get the means of their channels, by which `RealizeQuantization` corrects biases.

    Scales hold for inputs like the calibration inputs only: others are clipped to their ranges. Random inputs
    are the last resort.

    Attributes:
        inputs: FILE.npz or a folder of such files (see `calibration_inputs`); random inputs if empty.
        method: Calibrator: "minmax", "percentile", "entropy" or "mse".
        percentile: Percentage of the values that the range of "percentile" contains.
        seed: Random seed of random inputs.
        record: Result of an earlier calibration of this program as `calibration_record` returns it; then
            nothing is run.

    Raises:
        UsageError: There is no such calibrator, the inputs cannot be read, or the record is of another
            program.
        ExecutionError: No toolchain runs the program.

    Before:
        def @main(%x: Tensor[(1, 2), float32]) {
          %a = intarsia::simulated_quantize(%x, axis=-1, dtype="uint8", key=0);
          %w = intarsia::simulated_quantize(meta[Constant][0], axis=1, dtype="int8", key=1);
          MatMul(%a, %w)
        }
    After:
        def @main(%x: Tensor[(1, 2), float32]) {
          %a = intarsia::simulated_quantize(
            %x, float32(0.5), uint8(51), axis=-1, dtype="uint8", key=0);
          %w = intarsia::simulated_quantize(
            meta[Constant][0], float32[1, 1, 1], int8[0, 0, 0], axis=1, dtype="int8", key=1);
          MatMul(%a, %w)
        }
    Constants:
        full(2, 3, 127, float32)
    """

    inputs: str = ""
    method: str = "minmax"
    percentile: float = 99.99
    seed: int = 0
    record: str = ""

    def __post_init__(self) -> None:
        """Check the options."""
        check_method(self.method, self.percentile)
        if self.record:
            CalibrationRecord.from_text(self.record)

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """The module with scales; those that marks have already stay."""
        if "main" not in mod or not any(map(_lacks_scale, top_level(mod["main"].body))):
            return mod
        record = CalibrationRecord.from_text(self.record) if self.record else self._calibrate(mod, ctx)
        return with_scales(mod, record, self.method)

    def _calibrate(self, mod: IRModule, ctx: PassContext) -> CalibrationRecord:
        if self.inputs:
            sets: InputSets = read_calibration(Path(self.inputs), mod["main"]).inputs
        else:
            sets = [random_inputs(mod["main"], self.seed + number) for number in range(RANDOM_SETS)]
            message = "calibrated on random inputs: scales fit no real data"
            ctx.diagnose(mod["main"], DiagnosticLevel.MISSED, message, [])
        return calibrate(mod, sets, self.method, self.percentile)


def calibrate(
    mod: IRModule, inputs: InputSets, method: str = "minmax", percentile: float = 99.99
) -> CalibrationRecord:
    """Run an annotated program on input sets, and return the ranges that a calibrator selects.

    Args:
        mod: Program with annotations in @main.
        inputs: Input sets, by parameter name.
        method: Calibrator: "minmax", "percentile", "entropy" or "mse".
        percentile: Percentage of the values that the range of "percentile" contains.

    Raises:
        UsageError: There is no such calibrator or no input set, or a value is not finite.
        ExecutionError: No toolchain runs the program.
    """
    check_method(method, percentile)
    return CalibrationRecord.of(observe(mod, inputs), method, percentile)


def calibration_record(
    mod: IRModule, inputs: InputSets, method: str = "minmax", percentile: float = 99.99
) -> str:
    """Return the result of `calibrate` as text, for the option `record` of `CalibrateQuantization`."""
    return calibrate(mod, inputs, method, percentile).text


def with_scales(mod: IRModule, record: CalibrationRecord, method: str) -> IRModule:
    """Return an annotated program with scales.

    Args:
        mod: Program with annotations in @main.
        record: Ranges of the computed values.
        method: Calibrator, which selects scales of weights, too.

    Raises:
        UsageError: The record lacks a value.
    """
    main = mod["main"]
    done: dict[Expr, Expr] = {}
    for node in post_order(main.body):
        new = with_children(node, tuple(done[child] for child in children(node)))
        done[node] = _with_scale(new, record, method) if isinstance(new, Call) and _lacks_scale(new) else new
    return mod.with_function("main", with_fields(main, body=done[main.body]))


def _lacks_scale(node: Expr) -> bool:
    return is_annotation(node) and isinstance(node, Call) and len(node.args) == 1


def _with_scale(mark: Call, record: CalibrationRecord, method: str) -> Expr:
    value, axis, key = mark.args[0], mark.attrs["axis"], key_of(mark)
    assert isinstance(axis, int)
    if isinstance(value, Constant):
        scales = _weight_scales.setdefault(value, {})
        if (axis, method) not in scales:
            scales[axis, method] = weight_scale(value.data, axis, method)
        scale = scales[axis, method]
        return _marked(mark, scale, np.zeros(scale.shape, np.int8))
    if key not in record.limits:
        raise UsageError(
            f"the record of the calibration has no range for value {key}",
            help="calibrate the program as it is now",
        )
    step, zero = scale_and_zero_point(*record.limits[key])
    means = (record.means[key],) if key in record.means and not is_moved(value) else ()
    return _marked(mark, np.array(step, np.float32), np.array(zero, np.uint8), *means)


def _marked(mark: Call, *facts: Array) -> Call:
    return with_fields(mark, args=(mark.args[0], *map(Constant, facts)))
