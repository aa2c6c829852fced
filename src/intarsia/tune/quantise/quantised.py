"""Programs in integers as a transformation, with the ranges of an earlier calibration."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.ir import IRModule
from intarsia.measure.judge.accuracy import as_calibrated, with_error_bound
from intarsia.passes import AnnotateQuantization, RealizeQuantization, default_heuristic
from intarsia.transform import PassContext
from intarsia.tune.quantise.calibrate_quantization import with_scales
from intarsia.tune.quantise.calibration_record import CalibrationRecord
from intarsia.tune.transformations import transformation


def simplified_program(mod: IRModule) -> IRModule:
    """Return a program as it is quantised: with normalisations in the weights, and constants folded."""
    with PassContext():
        return default_heuristic()(mod)


def in_integers(
    mod: IRModule, record: CalibrationRecord, layers: Sequence[int] = (), method: str = "minmax"
) -> IRModule:
    """Return a simplified program with layers in integers.

    Args:
        mod: Program after `simplified_program`.
        record: Ranges of its values.
        layers: Numbers of the heavy layers to quantise; all if empty.
        method: Calibrator, which selects scales of weights.
    """
    annotated = AnnotateQuantization(layers=tuple(layers))(mod)
    return RealizeQuantization()(with_scales(annotated, record, method))


@transformation
def quantised(mod: IRModule, record: str, layers: Sequence[int], method: str, bound: float) -> IRModule:
    """Compute layers of a program in integers, and set the program's error bound.

    The program is right for inputs like those of the calibration only, and is judged by these.

    Args:
        mod: The program, without marked toolchains.
        record: Text of a calibration of all its layers.
        layers: Numbers of the heavy layers to quantise; all if empty.
        method: Calibrator, which selects scales of weights.
        bound: Largest error, as a fraction of the norm of each output.

    Raises:
        UsageError: The record is of another program, or the bound is no positive number.

    Before:
        def @main(%x: Tensor[(1, 2), float32]) { MatMul(%x, meta[Constant][0]) }
    After: (record='{"0":[-25.5,102.0]}', layers=[], method="minmax", bound=0.01)
        #[attrs(calibrated=true, error_bound=0.01)]
        def @main(%x: Tensor[(1, 2), float32]) {
          %a = DequantizeLinear(QuantizeLinear(%x, float32(0.5), uint8(51)), float32(0.5), uint8(51));
          MatMul(%a, DequantizeLinear(meta[Constant][1], float32[1, 1, 1], int8[0, 0, 0], axis=1))
        }
    """
    before = simplified_program(mod)
    after = in_integers(before, CalibrationRecord.from_text(record), layers, method)
    return mod if after is before else as_calibrated(with_error_bound(after, bound))
