"""The manifest of an artifact: its content, as JSON."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from intarsia.ir.dtype import DType
from intarsia.runtime.artifact_damage import damaged
from intarsia.runtime.artifact_format import DEVICES_VERSION, FORMAT_NAME, FORMAT_VERSION, MANIFEST
from intarsia.runtime.artifact_writer import FileEntry
from intarsia.runtime.bounded_json import parse_json
from intarsia.runtime.json_record import Record, as_shape, unexpected
from intarsia.runtime.plan import ExecutionPlan
from intarsia.runtime.plan_json import plan_from_json, plan_to_json
from intarsia.runtime.safetensors_file import StoredTensor
from intarsia.support.errors import ArtifactError


@dataclass(frozen=True, slots=True)
class KernelEntry:
    """A kernel in the manifest.

    Attributes:
        name: Name for errors and profiles.
        toolchain: Name of the toolchain that compiles it.
        toolchain_version: Version that compiled it.
        target: Text of its target.
        source: File of its model.
        weights: Number of the constant for each external initializer of the model, by name.
        blob: File of its compiled form, if there is one.
        architecture: Machine that the compiled form is for ("x86_64").
        isa: Instruction sets of the machine that it was compiled on; none if it was compiled for a CPU by
            name, as its compiled form contains what it needs then.
        pass_settings: See KernelSource; the manifest has it where it is not "".
    """

    name: str
    toolchain: str
    toolchain_version: str
    target: str
    source: str
    weights: dict[str, int]
    blob: str | None
    architecture: str
    isa: tuple[str, ...]
    pass_settings: str = ""

    def to_json(self) -> dict[str, object]:
        """Return the entry as plain data."""
        record = asdict(self)
        if not self.pass_settings:
            del record["pass_settings"]
        return record


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of an artifact that is not in its other files.

    Attributes:
        files: Size and digest of every other file.
        plan: Steps of the program in their order.
        constants: The tensors of the file of constants.
        plan_constants: Numbers of the constants that the plan uses, in the order of its own numbers.
        program_constants: Numbers of the constants that the program's text refers to.
        kernels: Kernels in the order of the plan's numbers.
        model: Name of the model.
        created_by: Name and version of the software.
        host: Facts of the building machine.
        isa: Instruction sets without which it cannot run.
        self_test: Numbers of inputs and outputs of the self test, if there is one.
    """

    files: dict[str, FileEntry]
    plan: ExecutionPlan
    constants: tuple[StoredTensor, ...]
    plan_constants: tuple[int, ...]
    program_constants: tuple[int, ...]
    kernels: tuple[KernelEntry, ...]
    model: str
    created_by: str
    host: dict[str, object]
    isa: tuple[str, ...]
    self_test: tuple[tuple[StoredTensor, ...], tuple[StoredTensor, ...]] | None

    def to_bytes(self) -> bytes:
        """Return the content of the manifest's file; it ends with its own digest."""
        record: dict[str, object] = {
            "format": FORMAT_NAME,
            "version": DEVICES_VERSION if self.plan.devices else FORMAT_VERSION,
            "files": {name: asdict(entry) for name, entry in self.files.items()},
            "plan": plan_to_json(self.plan),
            "constants": [asdict(tensor) for tensor in self.constants],
            "plan_constants": self.plan_constants,
            "program_constants": self.program_constants,
            "kernels": [kernel.to_json() for kernel in self.kernels],
            "provenance": {
                "model": self.model,
                "created_by": self.created_by,
                "host": self.host,
                "isa": self.isa,
            },
            "self_test": self.self_test
            and {
                "inputs": [asdict(tensor) for tensor in self.self_test[0]],
                "outputs": [asdict(tensor) for tensor in self.self_test[1]],
            },
        }
        return json.dumps({**record, "digest": _digest(record)}, indent=1).encode()

    @classmethod
    def from_bytes(cls, data: bytes, path: Path) -> Manifest:
        """Parse the manifest of the artifact at `path`.

        Raises:
            ArtifactError: It is not readable, of another version, or damaged.
        """
        record = _parse_envelope(data, path)
        try:
            return cls._from_record(record)
        except ArtifactError as error:
            raise damaged(path, error.problem) from error
        except RecursionError as error:
            raise damaged(path, f"{MANIFEST} is nested too deeply") from error

    @classmethod
    def _from_record(cls, record: Record) -> Manifest:
        provenance = record.record("provenance")
        host = provenance.record("host")
        return cls(
            files=_files(record.record("files")),
            plan=plan_from_json(record.record("plan")),
            constants=record.read_list("constants", _stored_tensor),
            plan_constants=record.counts("plan_constants"),
            program_constants=record.counts("program_constants"),
            kernels=record.read_list("kernels", _kernel),
            model=provenance.text("model"),
            created_by=provenance.text("created_by"),
            host={key: host.get(key) for key in host.keys()},  # noqa: SIM118  # not a mapping
            isa=provenance.texts("isa"),
            self_test=_self_test(record),
        )


def _parse_envelope(data: bytes, path: Path) -> Record:
    """Parse a manifest and check its format, version and digest."""
    try:
        value = parse_json(data, MANIFEST)
    except ArtifactError as error:
        raise damaged(path, error.problem) from error
    if not isinstance(value, dict) or value.get("format") != FORMAT_NAME:
        raise ArtifactError(f"{path} is no artifact: {MANIFEST} does not say format {FORMAT_NAME}")
    if value.get("version") not in (FORMAT_VERSION, DEVICES_VERSION):
        version = json.dumps(value.get("version"))
        raise ArtifactError(
            f"{path} has format version {version}, expected {FORMAT_VERSION} or {DEVICES_VERSION}",
            help="load it with the version of Intarsia that saved it, or build it again",
        )
    digest = value.pop("digest", None)
    try:
        found_digest = _digest(value)
    except RecursionError as error:
        raise damaged(path, f"{MANIFEST} is nested too deeply") from error
    if digest != found_digest:
        raise damaged(path, f"the digest of {MANIFEST} does not fit its content")
    return Record(value, MANIFEST)


def _digest(record: dict[str, object]) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def _files(record: Record) -> dict[str, FileEntry]:
    entries = {name: record.record(name) for name in record.keys()}  # noqa: SIM118  # not a mapping
    return {name: FileEntry(entry.count("size"), entry.text("sha256")) for name, entry in entries.items()}


def _stored_tensor(value: object, where: str) -> StoredTensor:
    record = Record(value, where)
    dtype = record.text("dtype")
    if dtype not in {member.value for member in DType}:
        raise unexpected(record.path_to("dtype"), dtype, "an element type")
    return StoredTensor(record.text("name"), dtype, as_shape(record.get("shape"), record.path_to("shape")))


def _kernel(value: object, where: str) -> KernelEntry:
    record = Record(value, where)
    weights = record.record("weights")
    return KernelEntry(
        name=record.text("name"),
        toolchain=record.text("toolchain"),
        toolchain_version=record.text("toolchain_version"),
        target=record.text("target"),
        source=record.text("source"),
        weights={name: weights.count(name) for name in weights.keys()},  # noqa: SIM118  # not a mapping
        blob=record.optional_text("blob"),
        architecture=record.text("architecture"),
        isa=record.texts("isa"),
        pass_settings=record.text("pass_settings") if "pass_settings" in record.keys() else "",  # noqa: SIM118  # not a mapping
    )


def _self_test(record: Record) -> tuple[tuple[StoredTensor, ...], tuple[StoredTensor, ...]] | None:
    if record.get("self_test") is None:
        return None
    test = record.record("self_test")
    return test.read_list("inputs", _stored_tensor), test.read_list("outputs", _stored_tensor)
