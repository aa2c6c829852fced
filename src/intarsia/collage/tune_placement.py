"""Collage as a tuning pass: one toolchain for the whole program, or one for each part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from intarsia.collage.candidates.optimize_for import preamble
from intarsia.collage.collage_partition import MEASURED
from intarsia.collage.placement.placement import Placement
from intarsia.ir import IRModule
from intarsia.support.errors import UsageError
from intarsia.target import Target
from intarsia.transform import Pass, register_pass
from intarsia.tune.target_options import marked_functions
from intarsia.tune.trace import Trace
from intarsia.tune.tuning_context import TuningContext
from intarsia.tune.tuning_pass import TuningPass

ToolchainPasses: TypeAlias = Mapping[str, Sequence[Pass]] | Sequence[tuple[str, Sequence[Pass]]]
"""Passes by name of a toolchain, or as pairs of a name and passes, as which they are kept."""


@register_pass
@dataclass(frozen=True)
class TunePlacement(TuningPass, opt_level=0):
    """Decides which toolchain runs the program, or which run its parts (seed relax_pass_infra, Collage).

    Candidates are the whole program on each target, and the placements of parts that Collage finds by the
    sums of what it measures of the parts. They are evaluated end to end, and the best one wins; of equal ones
    the whole, and the target that is named first. A program that has given something away is left as it is.
    One that is planned on several devices has parts only, each on one device.

    Passes leave alone what is a toolchain's. So `eval_passes`, and those of the toolchain, come before a
    program is given away as a whole: they decide anew for each target, by what the program costs there. Parts
    are then searched in the program that the best target alone would get. `placed_passes`, which decide on
    functions of toolchains, come behind each placement. `target_passes` decide first, and once, on options of
    targets, such as native's schedule log: other passes and parts then have the targets with these options.

    Attributes:
        targets: Names of toolchains, or texts of targets ("cpu -toolchain=openvino -threads=2"); empty for
            all that work here.
        toolchain_passes: Passes by name of a toolchain, applied after `eval_passes`, before the program
            is given to that toolchain as a whole; its preamble (`optimize_for`) if none are given.
        placed_passes: Passes that each candidate goes through when it is placed.
        target_passes: Passes by name of a toolchain, which decide on options of its functions, for the whole
            program as it is. None run on a target that takes far longer for it than the fastest one.
        placements: Further placements of parts; those that do not fit the program are left out.
        estimator: Estimator of parts' costs: a name of `COST_ESTIMATORS`, or "measured": the measurer of the
            context's evaluator. If that does not measure, no parts are searched.
        seconds: Time for measuring parts; they are searched if there are at least 3.
        covers: Largest number of Collage's placements that are evaluated.
        evolves: Whether the best placements are evolved by their cost end to end, with a third of the time.
        reach: Largest ratio to the fastest target at which a target may still catch up by `eval_passes`;
            slower ones are evaluated as they are, without these passes. None: passes run for all targets.
        seed: Random seed of the evolution.

    Raises:
        UsageError: A target is none of a toolchain, `toolchain_passes` or `target_passes` name one that is no
            target, or a number is below 0.
    """

    targets: tuple[str, ...] = ()
    toolchain_passes: ToolchainPasses = ()
    placed_passes: tuple[Pass, ...] = ()
    target_passes: ToolchainPasses = ()
    placements: tuple[Placement, ...] = ()
    estimator: str = MEASURED
    seconds: float = 60.0
    covers: int = 4
    evolves: bool = False
    reach: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        for option in ("toolchain_passes", "target_passes"):
            pairs = dict(getattr(self, option)).items()
            object.__setattr__(self, option, tuple((name, tuple(row)) for name, row in pairs))
        for name in ("targets", "placed_passes", "placements"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if self.seconds < 0 or self.covers < 0:
            raise UsageError(f"expected 0 or more, got seconds={self.seconds}, covers={self.covers}")
        names = [str(each.toolchain) for each in self._named_targets()]
        for option in ("toolchain_passes", "target_passes"):
            unknown = [name for name in dict(getattr(self, option)) if name not in names]
            if names and unknown:
                raise UsageError(
                    f"{option} has {unknown[0]!r}, which is no target", help=f"targets: {', '.join(names)}"
                )

    def tune(self, trace: Trace, ctx: TuningContext) -> Trace:
        """The program with the best placement that is known when the limits are reached.

        Raises:
            UsageError: There is no such estimator, or a pass before the placement gives something away.
            MissingToolchainError: A target's toolchain is not usable here.
            IntarsiaError: Measuring is impossible.
        """
        from intarsia.collage.placement_search import PlacementSearch

        if any(True for _ in marked_functions(trace.out_mod)):
            return trace.copy()
        targets = self._targets()
        return PlacementSearch(self._with_preambles(trace.out_mod, targets), ctx, targets).best(trace)

    def _with_preambles(self, mod: IRModule, targets: tuple[Target, ...]) -> TunePlacement:
        """Add the preambles that change the program for toolchains without passes of their own."""
        names = dict.fromkeys(str(target.toolchain) for target in targets)
        given = dict(self.toolchain_passes)
        changing = {name: preamble(name) for name in names if name not in given}
        passes = {
            name: sequence.passes
            for name, sequence in changing.items()
            if sequence is not None and sequence(mod) is not mod
        }
        return replace(self, toolchain_passes={**given, **passes}) if passes else self

    def _named_targets(self) -> tuple[Target, ...]:
        from intarsia.passes.annotate_target import toolchain_target

        return tuple(dict.fromkeys(map(toolchain_target, self.targets)))

    def _targets(self) -> tuple[Target, ...]:
        from intarsia.toolchain import targets, toolchain_for

        named = self._named_targets()
        for target in named:
            toolchain_for(target)  # says why it is not usable
        chosen = named or targets()
        if not chosen:
            raise UsageError("no toolchain works here, so the program cannot be placed")
        return chosen
