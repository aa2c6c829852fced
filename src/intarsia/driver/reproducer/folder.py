"""A failure of a pass in a folder: program and constants, pipeline, settings, versions."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, Self

from intarsia.driver.program_file import read_program, write_program
from intarsia.driver.reproducer.find_failure import FoundFailure
from intarsia.driver.reproducer.pass_failure import FailureKind, PassFailure
from intarsia.ir import IRModule
from intarsia.support.errors import UsageError
from intarsia.support.files import output_error, write_text
from intarsia.support.json_text import parse_json_text
from intarsia.support.version import VERSION
from intarsia.transform import PassContext, PassSettings
from intarsia.transform.pass_owner import pass_owner

PROGRAM: Final = "program.txt"
REDUCED: Final = "reduced.txt"
_FACTS: Final = "reproducer.json"
_FORMAT: Final = 1
_PACKAGES: Final = ("numpy", "onnx", "ml_dtypes")


@dataclass(frozen=True, slots=True)
class Reproducer:
    """A program, the pass that fails on it, and how.

    Attributes:
        mod: The program.
        pipeline: Text of the pass.
        settings: Settings of the context.
        failure: The failure.
        seed: Seed of the random inputs.
    """

    mod: IRModule
    pipeline: str
    settings: PassSettings
    failure: PassFailure
    seed: int = 0

    @classmethod
    def of(cls, found: FoundFailure, ctx: PassContext, seed: int) -> Self:
        """Return the reproducer of a failure that was found under a context."""
        return cls(found.mod, str(found.item), PassSettings.of(ctx), found.failure, seed)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read a folder that `write` wrote.

        Raises:
            UsageError: It is none, or is damaged.
            ProgramTextError: The program does not parse.
        """
        try:
            facts = parse_json_text((folder / _FACTS).read_text(encoding="utf-8"))
            if facts["format"] != _FORMAT:
                raise UsageError(f"{folder} has format {facts['format']}, expected {_FORMAT}")
            record = facts["failure"]
            kind = FailureKind(record["kind"])
            failure = PassFailure(kind, record["pass_name"], record["text"], record["type"])
            settings = PassSettings(str(facts["settings"]))
            pipeline, seed = str(facts["pipeline"]), int(facts["seed"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(
                f"{folder} is no folder of a reproducer: {error}", help="intarsia opt --reproducer writes one"
            ) from error
        return cls(read_program(folder / PROGRAM), pipeline, settings, failure, seed)

    def write(self, folder: Path) -> None:
        """Write the folder; files of an earlier reproducer in it are replaced.

        Raises:
            OutputError: The file system refuses.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise output_error(folder, error) from error
        write_program(self.mod, folder / PROGRAM)
        facts = {
            "format": _FORMAT,
            "pipeline": self.pipeline,
            "settings": self.settings.text,
            "failure": asdict(self.failure),
            "seed": self.seed,
            "versions": _versions(self.failure.pass_name),
            "replay": f"intarsia opt --reduce {folder.name}",
        }
        write_text(folder / _FACTS, json.dumps(facts, indent=1, ensure_ascii=False) + "\n")


def _versions(pass_name: str) -> dict[str, str]:
    from intarsia.transform import Sequential

    owner = pass_owner(pass_name, Sequential([]))
    versions = {"intarsia": VERSION, "python": platform.python_version(), "machine": platform.platform()}
    if owner is not None and not owner.is_ours:
        versions["pass"] = str(owner)
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions
