"""Which operators run on which device, by measuring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final

from intarsia.collage.device_placement.device_targets import device_targets
from intarsia.passes.merge_compiler_regions import MergeCompilerRegions
from intarsia.passes.partition_graph import PartitionGraph
from intarsia.support.errors import UsageError
from intarsia.target import VirtualDevice
from intarsia.transform import Pass, register_pass
from intarsia.transform.option_type import option_type
from intarsia.tune.choice import Choice
from intarsia.tune.instruction import Instruction
from intarsia.tune.target_options import marked_functions
from intarsia.tune.trace import Trace
from intarsia.tune.tuning_context import TuningContext
from intarsia.tune.tuning_pass import UNCHANGED, TuningPass

DEVICES: Final = "devices"
"""Name of the instruction."""

AS_IT_IS: Final = "as it is"
"""The decision to name no device."""


_EXAMPLE: Final = 'VirtualDevice(cpu:0, target="cpu -toolchain=native -threads=1")'


@option_type
@dataclass(frozen=True, slots=True)
class CopyCost:
    """What a copy between two different devices costs.

    Attributes:
        seconds: Fixed time of any copy.
        seconds_per_byte: Additional time per byte.

    Raises:
        UsageError: One of them is negative, infinite or no number.
    """

    seconds: float = 0.0
    seconds_per_byte: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what is no duration."""
        for name, value in (("seconds", self.seconds), ("seconds_per_byte", self.seconds_per_byte)):
            if not 0 <= value < inf:
                raise UsageError(f"a copy has {name}={value}; expected a finite number, 0 or more")


@register_pass
@dataclass(frozen=True)
class TuneDevicePlacement(TuningPass, opt_level=0, places_devices=True):
    """Decides which operators run on which device; devices then work at the same time (reference part C.6).

    Each operator is evaluated alone on each target, and copies are measured. A model of the runtime, in which
    each device runs its operators in the order of the program and pays for its copies, predicts the time of a
    placement takes; the best one by it is exact on small programs (`search_devices`). Candidates are the
    program without devices, as the judge runs it, all on one device, for each, and the best placements by the
    model if copies cost as measured, and several times that; they are evaluated end to end behind
    `eval_passes`, and the best wins; of equal ones the first.

    Operators whose devices are given stay there, and then no candidate is without devices. A program that
    calls functions, whose shapes are not known, of which something belongs to a toolchain already, or with an
    operator that could be measured on no device, is left as it is.

    Before:
        def @main(%x: Tensor[(2,), float32]) { Relu(%x) }
    After:
        def @main(%x: Tensor[(2,), float32] @device(cpu:1, target="cpu -toolchain=reference")) @device(
          cpu:1, target="cpu -toolchain=reference"
        ) { Relu(%x) @device(cpu:1, target="cpu -toolchain=reference") }

    Attributes:
        eval_passes: Passes that make functions for toolchains in a placed program: regions. With Collage
            there (`TunePlacement`), each placement on devices gets its own placement on toolchains.
        devices: Texts of virtual devices, at least one, each with number and target, such as
            `VirtualDevice(cpu:0, target="cpu -toolchain=native -threads=1")`. A target without toolchain
            leaves it to `eval_passes` which one gets what.
        toolchains: Toolchains for such targets: an operator costs what it costs on the best of them.
        copy_cost: Cost of copies between different devices; measured if not given.
        nodes: Number of partial placements that the search visits.

    Raises:
        UsageError: There is no device, one twice, one without number or target, or one without a toolchain
            though no `toolchains` are given.
    """

    eval_passes: tuple[Pass, ...] = (MergeCompilerRegions(), PartitionGraph())
    devices: tuple[str, ...] = field(kw_only=True)
    toolchains: tuple[str, ...] = field(default=(), kw_only=True)
    copy_cost: CopyCost | None = field(default=None, kw_only=True)
    nodes: int = field(default=200_000, kw_only=True)

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        for name in ("devices", "toolchains"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        parsed = self._parsed()
        if not parsed or len(set(parsed)) < len(parsed):
            raise UsageError(f"expected one or more different devices, found {list(self.devices)}")
        for device in parsed:
            if device.virtual_device_id is None or device.target is None:
                raise UsageError(
                    f"{device} has no number, or no target", help=f"write, for example, {_EXAMPLE}"
                )
            device_targets(device, self.toolchains)

    def instructions(self, trace: Trace, ctx: TuningContext) -> Sequence[Instruction]:
        """One, whose choices are placements.

        Raises:
            UsageError: An operator's own device is none of the devices.
            MissingToolchainError: A device is not usable here.
            IntarsiaError: Measuring is impossible.
        """
        from intarsia.collage.device_placement.device_choices import device_assignments
        from intarsia.collage.device_placement.device_program import DeviceProgram
        from intarsia.collage.device_placement.operator_costs import operator_seconds
        from intarsia.collage.device_placement.placed_on_devices import placed_on_devices
        from intarsia.op.infer import infer_types

        is_taken = any(True for _ in marked_functions(trace.out_mod))
        program = None if is_taken else DeviceProgram.of(infer_types(trace.out_mod))
        if program is None or not program.calls:
            return [Instruction(DEVICES, {AS_IT_IS: Choice()})]
        devices = self._parsed()
        seconds = operator_seconds(program, devices, self.toolchains, ctx.evaluator)
        unmeasured = [str(call.op) for call, row in seconds.items() if min(row) == inf]
        if unmeasured:
            ctx.node.remark = f"{unmeasured[0]} runs on none of the devices, or was not measured: {UNCHANGED}"
            return [Instruction(DEVICES, {AS_IT_IS: Choice()})]
        assignments = device_assignments(program, devices, seconds, self.copy_cost, self.nodes, ctx.on_wait)
        placed = {
            key: Choice(placed_on_devices, {"devices": self.devices, "assignment": assignment})
            for key, assignment in assignments.items()
        }
        unplaced = {} if program.is_annotated else {AS_IT_IS: Choice()}
        return [Instruction(DEVICES, unplaced | placed)]

    def _parsed(self) -> tuple[VirtualDevice, ...]:
        return tuple(map(VirtualDevice.parse, self.devices))
