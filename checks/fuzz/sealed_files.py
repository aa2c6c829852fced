"""Changed files within an artifact with right digests, as an attacker can make them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Self

from checks.fuzz.mutate import mutated
from checks.fuzz.mutate_structure import first_line_mutated, json_mutated, tokens_mutated
from intarsia.runtime.artifact_format import MANIFEST, ArtifactFormat
from intarsia.runtime.artifact_load import load
from intarsia.runtime.executable import Executable


def content_mutated(seeds: Sequence[bytes], random: Random) -> bytes:
    """Return the name of a file, a line break, and its changed content."""
    name, end, content = random.choice(seeds).partition(b"\n")
    change = random.choice((mutated, first_line_mutated, json_mutated, tokens_mutated))
    return name + end + change([content], random)


@dataclass(frozen=True, slots=True)
class SealedFiles:
    """An artifact as a folder whose files are replaced, one at a time.

    Attributes:
        folder: The artifact.
        manifest: Its manifest without the digest.
        contents: Its other files by name.
    """

    folder: Path
    manifest: dict[str, Any]
    contents: dict[str, bytes]

    @classmethod
    def of(cls, executable: Executable, folder: Path) -> Self:
        """Save an executable as a folder."""
        executable.save(folder, format=ArtifactFormat.DIRECTORY)
        manifest = json.loads((folder / MANIFEST).read_bytes())
        del manifest["digest"]
        return cls(folder, manifest, {name: (folder / name).read_bytes() for name in manifest["files"]})

    @property
    def seeds(self) -> list[bytes]:
        """The name of each file, a line break, and its content."""
        return [name.encode() + b"\n" + content for name, content in self.contents.items()]

    def load(self, data: bytes) -> None:
        """Load the artifact with another content of one file, and the digest of that."""
        name, _, content = data.partition(b"\n")
        text = name.decode("utf-8", "replace")
        if text not in self.contents:
            return
        digest = hashlib.sha256(content).hexdigest()
        files = {**self.manifest["files"], text: {"size": len(content), "sha256": digest}}
        manifest = {**self.manifest, "files": files}
        seal = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
        try:
            (self.folder / text).write_bytes(content)
            (self.folder / MANIFEST).write_text(json.dumps({**manifest, "digest": seal}))
            load(self.folder).close()
        finally:
            (self.folder / text).write_bytes(self.contents[text])
