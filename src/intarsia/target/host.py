"""The fingerprint of a machine: measurements and compiled kernels are valid only where it is equal."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

from intarsia.support.digest import digest_text
from intarsia.support.errors import ArtifactError
from intarsia.target.cpu import cache_bytes, cpu_model, instruction_sets, read_cpuinfo, usable_cores
from intarsia.target.machine_file import machine_model

_LABELS: Final = {
    "cpu_model": "CPU model",
    "architecture": "architecture",
    "cores": "usable cores",
    "l1d_bytes": "L1 data cache bytes",
    "l2_bytes": "L2 cache bytes",
    "l3_bytes": "L3 cache bytes",
    "system": "operating system",
    "python": "Python",
    "thread_policy": "thread policy",
}
_TYPES: Final = {"str": str, "int": int}
_LATER_FIELDS: Final = ("machine", "gpus")
"""Fields that records of earlier versions lack; they are left out where they are empty."""


@dataclass(frozen=True, slots=True)
class Host:
    """A machine with what is installed on it, as far as it decides how fast and whether kernels run.

    Attributes:
        cpu_model: Name and numbers of the CPU.
        architecture: Machine type as `uname -m` says it ("x86_64", "aarch64").
        isa: Names of the relevant instruction sets, sorted.
        cores: Logical cores that the process may use.
        l1d_bytes: First level data cache of one core; 0 if unknown, as for the other caches.
        l2_bytes: Second level cache.
        l3_bytes: Third level cache.
        system: Kernel and its version without the patch level ("Linux 6.8").
        python: Version of Python.
        toolchains: Names and versions of the toolchains, sorted.
        thread_policy: Text of the toolchain layer's policy for the number of threads of a kernel.
        machine: Text of the machine model, measured or by the CPU's family, since schedule rules follow it;
            "" in records of versions without one.
        gpus: Facts about each GPU as text: name, size, clocks, driver; none in records of earlier versions.
    """

    cpu_model: str
    architecture: str
    isa: tuple[str, ...]
    cores: int
    l1d_bytes: int
    l2_bytes: int
    l3_bytes: int
    system: str
    python: str
    toolchains: tuple[tuple[str, str], ...] = ()
    thread_policy: str = ""
    machine: str = ""
    gpus: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "isa", tuple(sorted(self.isa)))
        object.__setattr__(self, "toolchains", tuple(sorted(self.toolchains)))

    @classmethod
    def detect(
        cls,
        toolchains: Iterable[tuple[str, str]] = (),
        thread_policy: str = "",
        root: Path = Path("/"),
        cores: int | None = None,
    ) -> Host:
        """Detect the machine of this process. Takes about a millisecond and starts no process.

        Args:
            toolchains: Names and versions, from the toolchain layer.
            thread_policy: Text of the toolchain layer's thread policy.
            root: Folder with `proc` and `sys`.
            cores: Number of usable cores; None detects it.
        """
        cpuinfo, caches = read_cpuinfo(root), cache_bytes(root)
        machine = platform.machine()
        release = ".".join(platform.release().split(".")[:2])
        assumed = ("neon",) if machine in {"arm64", "aarch64"} else ()
        return cls(
            cpu_model=cpu_model(cpuinfo) or f"unknown {machine}".strip(),
            architecture=machine,
            isa=instruction_sets(cpuinfo) or assumed,
            cores=usable_cores(root) if cores is None else cores,
            l1d_bytes=caches.get((1, "Data"), caches.get((1, "Unified"), 0)),
            l2_bytes=caches.get((2, "Unified"), 0),
            l3_bytes=caches.get((3, "Unified"), 0),
            system=f"{platform.system()} {release}".strip(),
            python=platform.python_version(),
            toolchains=tuple(toolchains),
            thread_policy=thread_policy,
            machine=str(machine_model(root)),
        )

    @property
    def digest(self) -> str:
        """Hexadecimal digest of all fields: the machine's part of a database key."""
        return digest_text([json.dumps(self.to_json(), sort_keys=True)])

    def to_json(self) -> dict[str, object]:
        """The fields as plain values; `from_json` reads them back."""
        record: dict[str, object] = {field.name: getattr(self, field.name) for field in fields(self)}
        record |= {"isa": list(self.isa), "toolchains": dict(self.toolchains), "gpus": list(self.gpus)}
        for name in _LATER_FIELDS:
            if not record[name]:
                del record[name]  # a record of a version without it keeps its digest
        return record

    @classmethod
    def from_json(cls, record: Mapping[str, object]) -> Host:
        """The host of a record that `to_json` made.

        Raises:
            ArtifactError: The record is damaged or of another version.
        """
        values: dict[str, object] = {}
        for field in fields(cls):
            if field.name in _LATER_FIELDS and field.name not in record:
                continue  # artifacts of versions before the field are still read
            if field.name not in record:
                raise ArtifactError(f"the host record has no {field.name!r}")
            values[field.name] = _plain(field.name, str(field.type), record[field.name])
        unknown = sorted(record.keys() - values.keys())
        if unknown:
            raise ArtifactError(f"the host record has an unknown {unknown[0]!r}")
        return cls(**values)  # type: ignore[arg-type]  # each value was checked against its field's type

    def differences(self, other: Host) -> tuple[str, ...]:
        """Return a line for each differing fact, this machine's first: "usable cores: 2 here, 64 there"."""
        lines = []
        for name, label in _LABELS.items():
            here, there = getattr(self, name), getattr(other, name)
            if here != there:
                lines.append(f"{label}: {_shown(here)} here, {_shown(there)} there")
        if differing := _differing_values(self.machine, other.machine):
            lines.append(f"machine model: {differing}")
        for number in range(max(len(self.gpus), len(other.gpus))):
            here, there = (_shown("".join(host.gpus[number : number + 1])) for host in (self, other))
            if here != there:
                lines.append(f"GPU {number}: {here} here, {there} there")
        for place, more, fewer in (("here", self, other), ("there", other, self)):
            if extra := fewer.isa_missing(more.isa):
                lines.append(f"instruction sets only {place}: {', '.join(extra)}")
        here_versions, there_versions = dict(self.toolchains), dict(other.toolchains)
        for name in sorted(here_versions.keys() | there_versions.keys()):
            here, there = here_versions.get(name), there_versions.get(name)
            if here != there:
                lines.append(f"toolchain {name}: {_shown(here)} here, {_shown(there)} there")
        return tuple(lines)

    def isa_missing(self, required: Iterable[str]) -> tuple[str, ...]:
        """Return the required instruction sets that this machine lacks, in the order given."""
        return tuple(name for name in required if name not in self.isa)


def _differing_values(here: str, there: str) -> str:
    """Return the values in which two texts of models differ, such as "line_bytes=64 here, none there"."""
    left, right = here.split(), there.split()
    only_here = " ".join(value for value in left if value not in right)
    only_there = " ".join(value for value in right if value not in left)
    return f"{_shown(only_here)} here, {_shown(only_there)} there" if only_here or only_there else ""


def _shown(value: object) -> str:
    return "none" if value in {None, ""} else str(value)


def _plain(name: str, type_name: str, value: object) -> object:
    """A field's value from its JSON form."""
    match name, value:
        case "isa" | "gpus", list() if all(isinstance(item, str) for item in value):
            return tuple(value)
        case "toolchains", dict() if all(isinstance(item, str) for pair in value.items() for item in pair):
            return tuple(value.items())
        case _ if type(value) is _TYPES.get(type_name):
            return value
    raise ArtifactError(f"the host record has {value!r} as {name!r}")
