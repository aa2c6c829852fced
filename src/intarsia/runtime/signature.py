"""Signatures of artifacts by Ed25519 keys: `docs/artifacts.md` describes the format.

The signed message is a fixed prefix and the bytes of the manifest, which has the digest of every other file.
Keys are PEM files, as OpenSSL writes them: `openssl genpkey -algorithm ed25519` makes one too.
"""

from __future__ import annotations

import base64
import binascii
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from intarsia.runtime.bounded_json import parse_json
from intarsia.runtime.json_record import Record
from intarsia.support.errors import ArtifactError, OutputError, UsageError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

PREFIX: Final = b"intarsia artifact signature 1\n"
"""Prefix of the signed message, before the manifest, so that a signature of other data never fits."""
FORMAT: Final = "intarsia-signature"
ALGORITHM: Final = "ed25519"
_INSTALL: Final = "pip install 'intarsia[signing]'"
_MOST_BYTES: Final = 1 << 16
"""Size limit of key and signature files; a real one has a few hundred bytes."""


@dataclass(frozen=True, slots=True)
class Signature:
    """The signature of an artifact.

    Attributes:
        key: Raw bytes of the signer's public key; for messages, never trusted.
        value: The 64 bytes of the signature.
    """

    key: bytes
    value: bytes

    def to_bytes(self) -> bytes:
        """Return the content of the signature's file."""
        import json

        return json.dumps(
            {
                "format": FORMAT,
                "version": 1,
                "algorithm": ALGORITHM,
                "key": base64.b64encode(self.key).decode(),
                "signature": base64.b64encode(self.value).decode(),
            },
            indent=1,
        ).encode()

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> Signature:
        """Read the content of a signature's file.

        Raises:
            ArtifactError: It is no signature of this format.
        """
        record = Record(parse_json(data, where), where)
        if (record.text("format"), record.count("version"), record.text("algorithm")) != (
            FORMAT,
            1,
            ALGORITHM,
        ):
            raise ArtifactError(f"{where} is no {FORMAT} of version 1 by {ALGORITHM}")
        return cls(_base64(record, "key", 32), _base64(record, "signature", 64))


def generate_keys(private: Path, public: Path) -> None:
    """Write a new private key, which only its owner may read, and its public key.

    Raises:
        OutputError: A file is there already, or cannot be written.
        UsageError: The package cryptography is not installed.
    """
    _require_cryptography()
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    shared = key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    for path in (private, public):
        if os.path.lexists(path):
            raise OutputError(
                f"cannot write {path}: there is a file already", help="give another name: a key is lost once"
            )
    _write_new(private, secret, 0o600)
    _write_new(public, shared, 0o644)


def sign_manifest(manifest: bytes, private: Path) -> Signature:
    """Sign the bytes of a manifest with the private key in a PEM file.

    Raises:
        UsageError: It is no such key, or the package cryptography is not installed.
    """
    key = _load_private_key(private)
    return Signature(key.public_key().public_bytes_raw(), key.sign(PREFIX + manifest))


def check_signature(manifest: bytes, signature: Signature, public: Path, artifact: Path) -> None:
    """Check that the owner of a public key has signed a manifest.

    Args:
        manifest: Bytes of the manifest's file.
        signature: The artifact's signature.
        public: PEM file of the public key.
        artifact: Path of the artifact, for errors.

    Raises:
        ArtifactError: Another key has signed it, or it was changed after it was signed.
        UsageError: `public` is no such key, or the package cryptography is not installed.
    """
    key = _load_public_key(public)
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(signature.value, PREFIX + manifest)
    except InvalidSignature as error:
        signed_by_it = signature.key == key.public_bytes_raw()
        problem = "it was changed after it was signed" if signed_by_it else "it is signed by another key"
        raise ArtifactError(
            f"the signature of {artifact} does not fit {public}: {problem}",
            help="get the artifact or the key again from whoever signed it",
        ) from error


def _base64(record: Record, name: str, size: int) -> bytes:
    try:
        value = base64.b64decode(record.text(name), validate=True)
    except (binascii.Error, ValueError):
        value = b""
    if len(value) != size:
        raise ArtifactError(f"{record.path_to(name)} is not {size} bytes in base64")
    return value


def _load_public_key(path: Path) -> Ed25519PublicKey:
    _require_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(_read_key_bytes(path))
    except (ValueError, UnsupportedAlgorithm) as error:
        raise _no_key(path, "public") from error
    if not isinstance(key, Ed25519PublicKey):
        raise _no_key(path, "public")
    return key


def _load_private_key(path: Path) -> Ed25519PrivateKey:
    _require_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(_read_key_bytes(path), password=None)
    except TypeError as error:  # cryptography's answer to a key under a password
        raise UsageError(
            f"{path} is under a password", help=f"openssl pkey -in {path} -out PLAIN.key takes it off"
        ) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise _no_key(path, "private") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise _no_key(path, "private")
    return key


def _read_key_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"cannot read the key {path}: {reason}", help="intarsia keygen makes one") from error


def _no_key(path: Path, kind: str) -> UsageError:
    return UsageError(f"{path} is no {kind} Ed25519 key in PEM form", help="intarsia keygen makes one")


def _write_new(path: Path, content: bytes, mode: int) -> None:
    """Create a file with its final permissions from the start; an existing file is an error."""
    try:
        # O_EXCL follows no link and overwrites no file; the mode applies before any secret byte is written.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise OutputError(f"cannot write {path}: {reason}") from error


def _require_cryptography() -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError as error:
        raise UsageError(
            "signing and checking signatures needs the package cryptography", help=_INSTALL
        ) from error
