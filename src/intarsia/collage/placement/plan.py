"""Plans: the placement of a program, as a file that a later run takes up, here or elsewhere."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from intarsia.collage.placement.placement import Placement
from intarsia.collage.placement.program_facts import ProgramFacts
from intarsia.ir import IRModule
from intarsia.measure.candidate_kind import AS_IT_IS, WHOLE
from intarsia.measure.measure_input import Candidate
from intarsia.support.errors import MissingToolchainError, UsageError
from intarsia.support.files import write_text
from intarsia.support.plain_record import from_plain, to_plain
from intarsia.support.version import VERSION
from intarsia.target import Host, Target
from intarsia.tune.tuned_candidate import (
    Decision,
    apply_decisions,
    decision_from_json,
    decisions_and_base,
    decisions_json,
    tuned_candidate,
)

FORMAT: Final = "intarsia-plan"
FORMAT_VERSION: Final = 2
"""Raised whenever older software could misread a plan."""

_OTHER_FILE: Final = "give a file that intarsia tune --plan wrote, or the name of a new one"


@dataclass(eq=False)
class PlanError(UsageError):
    """A plan that is damaged, of another version, or for another program."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The placement of a program, with the decisions that led to it.

    Attributes:
        whole: The target that runs all of it; None if parts are given to several.
        placement: The parts; without any if there is such a target, or if decisions have placed them.
        decisions: Decisions of tuning passes on the program, made before placement.
        program: Facts of the program that it fits.
        model: Name of the model that it was made for, for people.
        host_digest: Digest of the machine that it was made on.
        cpu: CPU model of that machine, for people.
        predicted_seconds: Sum of the measurements of its parts; None if nothing was predicted.
        measured_seconds: Time of the whole program, end to end; None if it was not measured.
        intarsia: Version of the software that made it.
    """

    whole: Target | None
    placement: Placement
    program: ProgramFacts
    decisions: tuple[Decision, ...] = ()
    model: str = ""
    host_digest: str = ""
    cpu: str = ""
    predicted_seconds: float | None = None
    measured_seconds: float | None = None
    intarsia: str = VERSION

    @classmethod
    def of_candidate(
        cls,
        mod: IRModule,
        candidate: Candidate,
        target: Target,
        *,
        model: str = "",
        host: Host | None = None,
        predicted_seconds: float | None = None,
        measured_seconds: float | None = None,
    ) -> Plan:
        """The plan that a candidate for a whole program stands for.

        Args:
            mod: The program.
            candidate: A placement, or all of it on one toolchain, behind decisions or not.
            target: Target that compiles what the candidate leaves to the target.
            model: Name of the model.
            host: The machine that it was measured on.
            predicted_seconds: The sum of its parts.
            measured_seconds: End to end.

        Raises:
            UsageError: It is of another kind.
        """
        decisions, base = decisions_and_base(candidate)
        is_placed = base.kind not in (WHOLE.kind, AS_IT_IS.kind)
        return cls(
            target if base.kind == WHOLE.kind else None,
            Placement.of_candidate(base) if is_placed else Placement(()),
            ProgramFacts.of(mod),
            decisions,
            model,
            host.digest if host else "",
            host.cpu_model if host else "",
            predicted_seconds,
            measured_seconds,
        )

    @property
    def candidate(self) -> Candidate:
        """The plan as a candidate for the whole program."""
        placed = self.placement.candidate if self.placement.partitions else AS_IT_IS
        return tuned_candidate(self.decisions, placed if self.whole is None else WHOLE)

    @property
    def targets(self) -> tuple[Target, ...]:
        """Toolchain of one part."""
        texts = dict.fromkeys(each.target for each in self.placement.partitions)
        return tuple(map(Target.parse, texts)) if self.whole is None else (self.whole,)

    @property
    def summary(self) -> str:
        """Number of parts of each toolchain: "openvino 2, onnxruntime 1", or "openvino" for all of it."""
        return self.placement.summary if self.whole is None else str(self.whole.toolchain)

    def is_same(self, other: Plan) -> bool:
        """Whether both run the same with the same toolchains."""
        return (self.whole, self.candidate.digest) == (other.whole, other.candidate.digest)

    def check(self, mod: IRModule, where: str) -> None:
        """See that the plan can be carried out for a program on this machine; nothing is compiled.

        Args:
            mod: The program.
            where: Name of the plan in errors, such as its path.

        Raises:
            PlanError: It is for another program, or does not fit together.
            MissingToolchainError: A toolchain of it is not usable here.
        """
        from intarsia.toolchain import toolchain

        difference = self.program.difference(ProgramFacts.of(mod))
        if difference:
            raise PlanError(
                f"the plan {where} is for another program ({self.model or 'unnamed'}): {difference}",
                help="give the plan of this model, or the name of a new file to make one",
            )
        for name in dict.fromkeys(each.toolchain for each in self.targets if each.toolchain):
            try:
                toolchain(name)
            except MissingToolchainError as error:
                text = f"the plan {where} cannot be carried out here: {error.problem}"
                raise MissingToolchainError(text, help=error.help) from error
        try:
            self.placement.applied(apply_decisions(mod, self.candidate))
        except UsageError as error:
            raise PlanError(f"the plan {where} is damaged: {error.problem}", help=_OTHER_FILE) from error

    def to_json(self) -> dict[str, Any]:
        """The plan as plain data; times in seconds."""
        return {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "intarsia": self.intarsia,
            "model": self.model,
            "program": to_plain(self.program),
            "host": {"digest": self.host_digest, "cpu": self.cpu},
            "predicted_seconds": self.predicted_seconds,
            "measured_seconds": self.measured_seconds,
            "decisions": decisions_json(self.decisions),
            "whole": None if self.whole is None else str(self.whole),
            "partitions": [each.to_json() for each in self.placement.partitions],
        }

    @classmethod
    def from_json(cls, data: object, where: str) -> Plan:
        """The plan that `to_json` wrote.

        Raises:
            PlanError: It did not, or another version of it did.
        """
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise PlanError(f"{where} is no plan", help=_OTHER_FILE)
        if data.get("version") != FORMAT_VERSION:
            raise PlanError(
                f"the plan {where} has version {data.get('version')!r}, expected {FORMAT_VERSION}: "
                f"Intarsia {data.get('intarsia', 'of unknown version')} wrote it, this is {VERSION}",
                help="tune again with the name of a new file",
            )
        try:
            return _read(data)
        except (ValueError, UsageError) as error:
            problem = error.problem if isinstance(error, UsageError) else str(error)
            raise PlanError(f"the plan {where} is damaged: {problem}", help=_OTHER_FILE) from error

    def write(self, path: Path) -> None:
        """Write the whole file or nothing.

        Raises:
            OutputError: The file system refused.
        """
        write_text(path, json.dumps(self.to_json(), indent=2, allow_nan=False) + "\n")

    @classmethod
    def read(cls, path: Path) -> Plan:
        """Read a plan.

        Raises:
            PlanError: There is none, or it is no plan, damaged or of another version.
        """
        try:
            data = json.loads(path.read_text())
        except FileNotFoundError as error:
            raise PlanError(f"there is no plan {path}", help=_OTHER_FILE) from error
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise PlanError(f"cannot read the plan {path}: {reason}", help=_OTHER_FILE) from error
        except UnicodeDecodeError as error:
            raise PlanError(f"{path} is no plan: it is no text", help=_OTHER_FILE) from error
        except (json.JSONDecodeError, RecursionError) as error:
            place = f" at line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
            raise PlanError(
                f"{path} is no plan, or is cut off: it is no JSON{place}", help=_OTHER_FILE
            ) from error
        return cls.from_json(data, str(path))


@dataclass(frozen=True, slots=True)
class _Host:
    digest: str
    cpu: str


@dataclass(frozen=True, slots=True)
class _Record:
    intarsia: str
    model: str
    program: ProgramFacts
    host: _Host
    predicted_seconds: float | None
    measured_seconds: float | None
    whole: str | None


def _read(data: Mapping[str, Any]) -> Plan:
    record = from_plain(_Record, dict(data), "it")
    partitions = _list(data, "partitions")
    is_placed = bool(partitions) or (bool(data.get("decisions")) and record.whole is None)
    if is_placed == (record.whole is not None):
        raise ValueError("it has to have either partitions or a target for the whole")
    placement = Placement.of_candidate(Candidate(Placement(()).candidate.kind, partitions))
    for each in placement.partitions:
        Target.parse(each.target)
    return Plan(
        None if record.whole is None else Target.parse(record.whole),
        placement,
        record.program,
        tuple(map(decision_from_json, _list(data, "decisions"))),
        record.model,
        record.host.digest,
        record.host.cpu,
        record.predicted_seconds,
        record.measured_seconds,
        record.intarsia,
    )


def _list(data: Mapping[str, Any], name: str) -> list[Any]:
    match data.get(name):
        case list() as found:
            return found
        case _:
            raise ValueError(f"its {name} are no list")
