"""Trust in the artifacts that the command line loads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from intarsia.runtime.executable import Executable
from intarsia.support.errors import UsageError

Untrusted: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--untrusted", help="Ignore compiled code in an artifact, and compile it from its source instead."
    ),
]
RequireSignature: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--require-signature", metavar="KEY.pub", help="Reject artifacts that this key has not signed."
    ),
]


@dataclass(frozen=True, slots=True)
class Trust:
    """The trust in the artifacts of a command line.

    Attributes:
        is_untrusted: Whether compiled code in artifacts is ignored.
        public_key: PEM file of the public key for the signatures of artifacts; None for no check.
    """

    is_untrusted: bool = False
    public_key: Path | None = None

    def load(self, path: Path) -> Executable:
        """Load an artifact; raises the errors of `runtime.artifact_load.load`."""
        from intarsia.runtime.artifact_load import load

        return load(path, trusted=not self.is_untrusted, require_signature=self.public_key)

    def refuse_for_models(self, text: str) -> None:
        """Refuse the options for a model, which would otherwise seem to be checked.

        Raises:
            UsageError: An option was given.
        """
        option = "require-signature" if self.public_key else "untrusted" if self.is_untrusted else ""
        if option:
            raise UsageError(
                f"--{option} cannot be used with {text}: it is not an artifact",
                help="a model is compiled from its source anyway; only artifacts are signed",
            )


TRUSTED = Trust()
"""The default: blobs are loaded, and no signature is required."""
