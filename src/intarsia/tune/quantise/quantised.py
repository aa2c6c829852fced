"""Programs in integers as a transformation, with the ranges of an earlier calibration."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.ir import IRModule
from intarsia.measure.judge.accuracy import as_calibrated, with_error_bound
from intarsia.passes import AnnotateQuantization, RealizeQuantization, ToMixedPrecision, default_heuristic
from intarsia.transform import PassContext
from intarsia.tune.quantise.calibrate_quantization import with_scales
from intarsia.tune.quantise.calibration_record import CalibrationRecord
from intarsia.tune.quantise.layer_types import ALL_INT8, LayerTypes
from intarsia.tune.quantise.rewrites import Rewrites
from intarsia.tune.transformations import transformation


def simplified_program(mod: IRModule) -> IRModule:
    """Return a program as it is quantised: with normalisations in the weights, and constants folded."""
    with PassContext():
        return default_heuristic()(mod)


def in_integers(
    mod: IRModule, record: CalibrationRecord, types: LayerTypes = ALL_INT8, method: str = "minmax"
) -> IRModule:
    """Return a simplified program with layers in integers and bfloat16.

    Args:
        mod: Program after `simplified_program`.
        record: Ranges of its values.
        types: Numbers of the heavy layers in each type.
        method: Calibrator, which selects scales of weights.
    """
    current = mod
    if types.int8 or types.all_int8:
        annotated = AnnotateQuantization(layers=tuple(sorted(types.int8)))(mod)
        current = with_scales(annotated, record, method)
    if types.bfloat16:
        # Before layers in integers are realized: then they still have their numbers.
        current = ToMixedPrecision("bfloat16", layers=tuple(sorted(types.bfloat16)))(current)
    return RealizeQuantization()(current)


@transformation
def quantised(
    mod: IRModule,
    record: str,
    layers: Sequence[int],
    method: str,
    bound: float,
    bfloat16: Sequence[int] = (),
    equalizes: bool = False,
    smoothing: str = "",
) -> IRModule:
    """Compute layers of a program in integers, others in bfloat16, and set the program's error bound.

    The program is right for inputs like those of the calibration only, and is judged by these.

    Args:
        mod: The program, without marked toolchains.
        record: Text of a calibration of all its layers.
        layers: Numbers of the heavy layers to quantise; all if empty, and no layer is in bfloat16.
        method: Calibrator, which selects scales of weights.
        bound: Largest error, as a fraction of the norm of each output.
        bfloat16: Numbers of the heavy layers that multiply in bfloat16.
        equalizes: Whether layers are equalised before.
        smoothing: Record of activations that are smoothed before; "" for none.

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
    before = Rewrites(equalizes, smoothing).apply(simplified_program(mod))
    types = LayerTypes(frozenset(layers), frozenset(bfloat16)) or ALL_INT8
    after = in_integers(before, CalibrationRecord.from_text(record), types, method)
    return mod if after is before else as_calibrated(with_error_bound(after, bound))
