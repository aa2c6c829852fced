"""`intarsia keygen` and `intarsia sign`: signed artifacts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from intarsia.cli.reports.report import Report

Artifact = Annotated[Path, typer.Argument(metavar="ARTIFACT", help="Artifact of intarsia tune.")]


def keygen(
    name: Annotated[
        Path, typer.Argument(metavar="NAME", help="Path of the keys without suffix: NAME.key and NAME.pub.")
    ],
) -> Report:
    """Generate a pair of keys for signing artifacts.

    NAME.key signs: keep it secret. NAME.pub verifies: distribute it with your artifacts.
    """
    from intarsia.runtime.signature import generate_keys

    private, public = (name.with_name(name.name + suffix) for suffix in (".key", ".pub"))
    generate_keys(private, public)
    lines = (f"wrote {private}, which signs: keep it secret", f"wrote {public}, which checks: give it away")
    return Report({"private_key": str(private), "public_key": str(public)}, lines)


def sign(
    artifact: Artifact,
    key: Annotated[Path, typer.Option("--key", metavar="NAME.key", help="The private key, a PEM file.")],
) -> Report:
    """Sign an artifact with a private key, in place.

    Run it with `intarsia run ARTIFACT --require-signature NAME.pub`.
    """
    from intarsia.runtime.artifact_sign import sign_artifact

    sign_artifact(artifact, key)
    return Report({"artifact": str(artifact), "key": str(key)}, (f"signed {artifact} with {key}",))
