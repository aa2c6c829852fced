"""Which layers of a program are computed in 8-bit integers or bfloat16, within a bound on the error."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from intarsia.ir import IRModule
from intarsia.measure.judge.accuracy import with_error_bound
from intarsia.support.free_names import free_name
from intarsia.transform import register_pass
from intarsia.tune.choice import Choice
from intarsia.tune.instruction import Instruction
from intarsia.tune.quantise.calibration_record import CalibrationRecord
from intarsia.tune.quantise.calibrators import check_method
from intarsia.tune.quantise.layer_types import ALL, LayerTypes
from intarsia.tune.quantise.quantised import quantised
from intarsia.tune.quantise.rewrites import Rewrites
from intarsia.tune.quantise.smooth_activations import read_exponents
from intarsia.tune.strategy import Greedy, Strategy
from intarsia.tune.target_options import marked_functions
from intarsia.tune.trace import Trace
from intarsia.tune.tuned_candidate import Decision
from intarsia.tune.tuning_context import TuningContext
from intarsia.tune.tuning_pass import TuningPass

AS_IT_IS: Final = "as it is"
"""The decision to keep float32; it stands first, and wins ties."""

_NAME: Final = "quantisation"


@register_pass
@dataclass(frozen=True)
class TuneQuantization(TuningPass, opt_level=0):
    """Decides which layers of a program are computed in 8-bit integers, with ranges from a calibration.

    A set of layers may also have some that multiply in bfloat16, which errs less than integers and takes less
    time than float32 on CPUs with instructions for it.

    The program must not be placed yet; each target then decides for itself. Results differ by more than
    rounding explains, so a bound on the error is given. A program in integers carries it, is checked against
    it on inputs like those of the calibration, and is refused if an error is larger, however fast it is.

    Attributes:
        tolerance: Largest error allowed, as a fraction of the norm of each output.
        record: Ranges of the values, as `calibration_record` returns them for the annotated program.
        method: Calibrator that the ranges are from.
        layers: Sets of layers to choose from: "all", or numbers as of `AnnotateQuantization`, "0 3 4", with
            those of layers in bfloat16 after that word, "0 3 bfloat16 1 2".
        equalizes: Whether `EqualizeLayers` runs before.
        smoothing: Record of `SmoothActivations`, which runs before; "" for none.

    Raises:
        UsageError: The bound is no positive number, the record is malformed, there is no such calibrator, or
            a set of layers cannot be read.
    """

    strategy: Strategy = field(default_factory=Greedy, kw_only=True)
    tolerance: float = field(kw_only=True)
    record: str = field(kw_only=True)
    method: str = field(default="minmax", kw_only=True)
    layers: tuple[str, ...] = field(default=(ALL,), kw_only=True)
    equalizes: bool = field(default=False, kw_only=True)
    smoothing: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        with_error_bound(IRModule({}), self.tolerance)
        CalibrationRecord.from_text(self.record)
        check_method(self.method, 100)
        if self.smoothing:
            read_exponents(self.smoothing)
        for text in self.layers:
            LayerTypes.of_text(text)

    def instructions(self, trace: Trace, ctx: TuningContext) -> list[Instruction]:  # noqa: ARG002  # of all passes
        """Return one instruction; without an alternative if the program is placed."""
        is_placed = any(marked_functions(trace.out_mod))
        return [Instruction(_NAME, {AS_IT_IS: Choice(), **({} if is_placed else self.choices())})]

    def choices(self) -> dict[str, Choice]:
        """Return the choices beside float32, by what they are called."""
        rewrites = Rewrites(self.equalizes, self.smoothing).arguments
        facts = {"record": self.record, "method": self.method, "bound": self.tolerance, **rewrites}
        return {
            _named(text): Choice(quantised, {**facts, **_arguments(LayerTypes.of_text(text))})
            for text in self.layers
        }

    def decisions(self) -> dict[str, Decision]:
        """Return each choice as a decision of a trace, by a short name: "int8", "int8 in 3 layers"."""
        decisions: dict[str, Decision] = {}
        for text, (key, choice) in zip(self.layers, self.choices().items(), strict=True):
            name = free_name(LayerTypes.of_text(text).description, decisions, " ({})", 2)
            decisions[name] = f"{_NAME}: {key}", choice
        return decisions


def _arguments(types: LayerTypes) -> dict[str, list[int]]:
    narrow = {"bfloat16": sorted(types.bfloat16)} if types.bfloat16 else {}
    return {"layers": sorted(types.int8), **narrow}


def _named(text: str) -> str:
    types = LayerTypes.of_text(text)
    return "int8 in all layers" if text == ALL else f"{types.description}: {text}"
