"""Sign an artifact on disk."""

from __future__ import annotations

import os
from pathlib import Path

from intarsia.runtime.artifact_format import MANIFEST, SIGNATURE, ArtifactFormat
from intarsia.runtime.artifact_reader import open_artifact
from intarsia.runtime.artifact_writer import artifact_writer
from intarsia.runtime.bounded_json import MOST_BYTES
from intarsia.runtime.manifest import Manifest
from intarsia.runtime.signature import sign_manifest
from intarsia.support.files import write_atomically


def sign_artifact(path: str | os.PathLike[str], private_key: str | os.PathLike[str]) -> None:
    """Sign an artifact in place, replacing any earlier signature.

    All digests are checked first, so that a damaged artifact is never signed.

    Args:
        path: The artifact, in either form.
        private_key: PEM file of an Ed25519 key.

    Raises:
        ArtifactError: It is no artifact, or a damaged one.
        UsageError: The key cannot be used, or the package cryptography is not installed.
        OutputError: The file system refused; the artifact is as it was.
    """
    file = Path(path)
    reader = open_artifact(file)
    manifest = reader.read(MANIFEST, MOST_BYTES).tobytes()
    files = reader.read_all(Manifest.from_bytes(manifest, file).files)
    content = sign_manifest(manifest, Path(private_key)).to_bytes()
    if file.is_dir():
        with write_atomically(file / SIGNATURE) as temporary:
            temporary.write_bytes(content)
        return
    with artifact_writer(file, ArtifactFormat.ZIP) as writer:
        for name, data in files.items():
            with writer.file(name) as stream:
                stream.write(data.data)
        writer.add(MANIFEST, manifest)
        writer.add(SIGNATURE, content)
