"""The input of a measurement: a candidate for a workload on a target."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeAlias

import numpy.typing as npt

from intarsia.ir import DType, IRModule, structural_digest
from intarsia.measure.arrays.constant_digests import digest_constants
from intarsia.measure.inputs import random_inputs
from intarsia.measure.sizes.size_sample import SizeSample
from intarsia.op.operator_sources import operator_digests
from intarsia.passes import bind_sizes
from intarsia.support.digest import digest_bytes, digest_text
from intarsia.target import Target
from intarsia.transform import PassSettings

PlainData: TypeAlias = "bool | int | float | str | list[PlainData] | dict[str, PlainData] | None"
"""Plain values that JSON can represent."""


_CHECKED_BY: Final = "quorum, three input sets, integers by their use, noise of flat functions"
"""How results are checked: a verdict of another check, in a database, is not one about this workload."""


@dataclass(frozen=True, eq=False)
class Workload:
    """A program with its inputs; candidates are implementations of it.

    Attributes:
        module: The program; its @main is run.
        name: Name for messages.
        special_inputs: Real data for parameters, by name; the others are random, in their declared ranges.
        expected: The result for these inputs, flat, if it is known; else a reference is computed.
        by_structure: Whether it stands for all programs with this structure: then values of weights and
            special inputs are not part of the digest, and what one of them costs, the others cost too.
        is_checked: Whether the reference result is confirmed by a second engine, and on several input sets.
        judge_seconds: Seconds that onnx.reference may take as a judge, by estimate, for one input set.
        samples: Sizes of the symbolic dimensions that it is measured and checked at; those of the first are
            usual. Special inputs have the first sizes, and the others are random.
        settings: Pass settings that candidates are built under, in whatever process; default: those of the
            context in which the workload is made. Judges are built under the default settings.
    """

    module: IRModule
    name: str = ""
    special_inputs: Mapping[str, npt.NDArray[Any]] = field(default_factory=lambda: MappingProxyType({}))
    expected: tuple[npt.NDArray[Any], ...] | None = None
    by_structure: bool = False
    is_checked: bool = True
    judge_seconds: float = 60.0
    samples: tuple[SizeSample, ...] = ()
    settings: PassSettings = field(default_factory=PassSettings.current)

    def inputs(self, seed: int = 0) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays to run the program on, by parameter name.

        Args:
            seed: Seed of the random arrays.

        Raises:
            UsageError: A random input has a symbolic shape.
            UnsupportedModelError: One is no tensor of numbers.
        """
        special, main = dict(self.special_inputs), self.module["main"]
        if all(param.name in special for param in main.params):
            return special
        if self.samples:
            main = bind_sizes(self.module, self.samples[0].sizes)["main"]
        return {**random_inputs(main, seed), **special}

    @cached_property
    def digest(self) -> str:
        """Digest of program, special inputs and settings, equal in every process; the key in databases."""
        settings = (*self.settings.digest_parts, *operator_digests(self.module))
        if self.by_structure:
            return digest_text(("structure", structural_digest(self.module, weights=False), *settings))
        data = (
            f"{name}:{DType.of(array)}{array.shape}:{digest_bytes(array.tobytes()).hex()}"
            for name, array in sorted(self.special_inputs.items())
        )
        digest_constants(self.module)
        samples = (f"{sample.label}:{sample.weight:.6g}" for sample in self.samples)
        return digest_text((_CHECKED_BY, structural_digest(self.module), *data, *samples, *settings))


@dataclass(frozen=True, eq=False)
class Candidate:
    """An implementation of a workload as plain data, which any process can instantiate.

    Attributes:
        kind: Registered name of the instantiator, a function of workload, target and trace.
        trace: The decisions, as JSON holds them.
    """

    kind: str
    trace: PlainData = None

    @cached_property
    def text(self) -> str:
        """The trace as canonical JSON: equal traces have equal texts."""
        return json.dumps(self.trace, sort_keys=True, separators=(",", ":"), allow_nan=False)

    @cached_property
    def digest(self) -> str:
        """Digest of kind and trace; the key in databases."""
        return digest_text((self.kind, self.text))


class MeasuredWorkload(Protocol):
    """What candidates are implementations of: a program, or the computation of a kernel."""

    @property
    def digest(self) -> str:
        """Digest of it, equal in every process; the key in databases."""


class CandidateInput(Protocol):
    """A candidate of any kind for a workload on a target."""

    @property
    def workload(self) -> MeasuredWorkload:
        """Workload to compute."""

    @property
    def target(self) -> Target:
        """Target that it is measured on."""

    @property
    def candidate(self) -> Candidate:
        """Candidate to measure."""


@dataclass(frozen=True, slots=True, eq=False)
class MeasureInput:
    """A candidate for a workload on a target.

    Attributes:
        workload: Workload to compute.
        target: Target for the parts that the candidate does not place.
        candidate: Candidate to measure.
    """

    workload: Workload
    target: Target
    candidate: Candidate
