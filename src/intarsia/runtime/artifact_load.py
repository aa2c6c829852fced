"""Load an executable from disk, after checking all of it (DESIGN section 10)."""

from __future__ import annotations

import copyreg
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from intarsia.runtime.artifact_damage import damaged
from intarsia.runtime.artifact_format import (
    CONSTANTS,
    EXPLANATION,
    MANIFEST,
    PROGRAM,
    SELF_TEST,
    SIGNATURE,
    ArtifactFormat,
)
from intarsia.runtime.artifact_reader import ArtifactReader, check_name, open_artifact
from intarsia.runtime.bounded_json import MOST_BYTES
from intarsia.runtime.devices.open_devices import kernel_devices, open_devices, threads_of
from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import Array, CallsLibraries, Kernel, KernelLoader, KernelSource, LoadsInPlace
from intarsia.runtime.manifest import KernelEntry, Manifest
from intarsia.runtime.plan_check import plan_complaint
from intarsia.runtime.provenance import Provenance
from intarsia.runtime.safetensors_file import read_tensors
from intarsia.runtime.self_test import SelfTest
from intarsia.runtime.toolchain_version import usable_loader
from intarsia.support.errors import ArtifactError, MissingToolchainError, UsageError
from intarsia.target.host import Host

_PICKLED: Final = "pickled.intarsia"
"""File name of an artifact that stands in a pickle, in messages."""


def load(
    path: str | os.PathLike[str],
    locked: bool = False,
    *,
    trusted: bool = True,
    require_signature: str | os.PathLike[str] | None = None,
) -> Executable:
    """Load the executable that `Executable.save` wrote to `path`.

    An artifact is code: its kernels are machine code of this process, and whoever wrote the file can make
    them do anything. Digests show damage, not bad intent. Load artifacts of others with `trusted=False`,
    which runs none of their compiled code, or require the signature of someone you trust (SECURITY.md).

    Nothing is executed before all is checked, in this order: the manifest and its version, the file names,
    the digests, the machine, the toolchains. A kernel is compiled again from its source if its compiled form
    comes from another version of its
    toolchain, or from a machine with other instruction sets.

    Files of a megabyte and more, constants and compiled kernels, are memory-mapped. So a large model starts
    at once, and processes that load the same artifact share the memory; but the digest is that of the
    moment of loading. Leave the artifact as it is while the executable lives: a file that is changed in
    place changes results, one that is cut short ends the process (SIGBUS). Saving to the same path again is
    safe, it makes new files.

    Args:
        path: An artifact, in either form.
        locked: Refuse to compile anything under other conditions than it was saved.
        trusted: Whether compiled code out of the artifact may run; if not, all kernels are compiled from
            their sources, which takes as long as building the model does.
        require_signature: PEM file of the Ed25519 public key that the artifact's signature must match.

    Raises:
        ArtifactError: It is no artifact, or damaged, unsafe, of another version or for another machine, or
            not signed by the owner of the key.
        MissingToolchainError: A toolchain that it needs is not usable here.
        UsageError: `path` is no path, or the key cannot be used.
        CompileError: A toolchain refuses the source of a kernel.
    """
    if not isinstance(path, str | os.PathLike):
        raise UsageError(f"load takes a path, found {type(path).__name__}", help='such as "model.intarsia"')
    artifact = Path(path)
    reader = open_artifact(artifact)
    content = reader.read(MANIFEST, MOST_BYTES).tobytes()
    if require_signature is not None:  # before anything in the manifest is believed
        _check_signature(reader, content, Path(require_signature))
    manifest = Manifest.from_bytes(content, artifact)
    _check_references(artifact, manifest)
    files = reader.read_all(manifest.files)
    host = Host.detect()
    if missing := host.isa_missing(manifest.isa):
        raise ArtifactError(
            f"{artifact} needs the instruction sets {', '.join(missing)}, which this CPU lacks"
        )
    loaders = _find_loaders(artifact, manifest.kernels)
    fitting = [_misfit(artifact, entry, *loaders[entry.toolchain], host) for entry in manifest.kernels]
    if locked and any(fitting):
        raise ArtifactError(
            f"{next(filter(None, fitting))}", help="load it without locked=True to compile it again here"
        )
    misfits = [misfit or ("" if trusted else f"{artifact} is not trusted") for misfit in fitting]
    return _assemble(artifact, manifest, files, loaders, misfits)


def load_bytes(data: bytes) -> Executable:
    """Load the executable whose artifact, a zip file, has these bytes; see `load`.

    Raises:
        IntarsiaError: See `load`.
    """
    with TemporaryDirectory(prefix="intarsia-") as folder:
        path = Path(folder) / _PICKLED
        path.write_bytes(data)
        return load(path)  # files that are mapped stay readable after their names are gone


def _reduce(executable: Executable) -> tuple[Callable[[bytes], Executable], tuple[bytes]]:
    """Pickle and copy an executable by its artifact."""
    with TemporaryDirectory(prefix="intarsia-") as folder:
        path = Path(folder) / _PICKLED
        executable.save(path, format=ArtifactFormat.ZIP)
        return load_bytes, (path.read_bytes(),)


copyreg.pickle(Executable, _reduce)


def _check_signature(reader: ArtifactReader, manifest: bytes, public_key: Path) -> None:
    from intarsia.runtime.signature import Signature, check_signature

    if not reader.has(SIGNATURE):
        raise ArtifactError(
            f"{reader.path} is not signed", help="intarsia sign ARTIFACT --key KEY signs it with your own key"
        )
    data = reader.read(SIGNATURE, MOST_BYTES).tobytes()
    signature = Signature.from_bytes(data, f"{SIGNATURE} of {reader.path}")
    check_signature(manifest, signature, public_key, reader.path)


def _check_references(path: Path, manifest: Manifest) -> None:
    """Raise an ArtifactError if a manifest refers to a file, constant or block that the artifact lacks."""
    for name in manifest.files:
        check_name(path, name)
    needed = [PROGRAM, CONSTANTS, *(SELF_TEST for _ in (manifest.self_test,) if manifest.self_test)]
    for entry in manifest.kernels:
        needed += [name for name in (entry.source, entry.blob) if name is not None]
    if unlisted := {MANIFEST, SIGNATURE} & manifest.files.keys():
        raise damaged(path, f"{MANIFEST} lists {min(unlisted)}")
    for name in needed:
        if name not in manifest.files:
            raise damaged(path, f"{MANIFEST} does not list the file {name!r}")
    names = [name for entry in manifest.kernels for name in (entry.source, entry.blob) if name is not None]
    if len(set(names)) < len(names):  # each is read for its kernel: a small file could stand for many copies
        raise damaged(path, "two kernels have one file")
    weights = [number for entry in manifest.kernels for number in entry.weights.values()]
    numbers = [*manifest.plan_constants, *manifest.program_constants, *weights]
    if any(number >= len(manifest.constants) for number in numbers):
        raise damaged(path, f"it refers to a constant beyond {len(manifest.constants)}")
    complaint = plan_complaint(manifest.plan, len(manifest.kernels), len(manifest.plan_constants))
    if complaint:
        raise damaged(path, complaint)


def _find_loaders(path: Path, kernels: Sequence[KernelEntry]) -> dict[str, tuple[KernelLoader, str]]:
    try:
        return {name: usable_loader(name) for name in dict.fromkeys(entry.toolchain for entry in kernels)}
    except MissingToolchainError as error:
        error.add_note(f"needed by {path}")
        raise


def _misfit(path: Path, entry: KernelEntry, loader: KernelLoader, version: str, host: Host) -> str:
    """Return why a kernel's compiled form cannot be used here, or the empty string."""
    of_kernel = f'kernel "{entry.name}" of {path} was compiled'
    if entry.toolchain_version != version:
        saved_by = entry.toolchain_version or "an unknown version"
        return f"{of_kernel} by {entry.toolchain} {saved_by}, found {version}"
    if entry.blob is None:
        return ""
    if entry.architecture != host.architecture:
        return f"{of_kernel} for {entry.architecture}, found {host.architecture}"
    if entry.isa and entry.isa != host.isa:
        differing = sorted(set(entry.isa) ^ set(host.isa))
        return f"{of_kernel} on a CPU that differs from this one in {', '.join(differing)}"
    if isinstance(loader, CallsLibraries) and (library := loader.missing_library(entry.target)):
        return f"{of_kernel} to call the library {library}, which does not work here"
    return ""


def _assemble(
    path: Path,
    manifest: Manifest,
    files: Mapping[str, Array],
    loaders: Mapping[str, tuple[KernelLoader, str]],
    misfits: Sequence[str],
) -> Executable:
    listed = {str(number): tensor for number, tensor in enumerate(manifest.constants)}
    constants = list(read_tensors(files[CONSTANTS], listed, f"{CONSTANTS} of {path}").values())
    provenance = Provenance(
        program=_decode_text(path, PROGRAM, files[PROGRAM]),
        program_constants=tuple(constants[number] for number in manifest.program_constants),
        model=manifest.model,
        host=manifest.host,
        isa=manifest.isa,
        created_by=manifest.created_by,
    )
    test = _read_self_test(path, manifest, files)
    explanation = _decode_text(path, EXPLANATION, files[EXPLANATION]) if EXPLANATION in files else None
    plan, entries = manifest.plan, manifest.kernels
    plan_constants = [constants[number] for number in manifest.plan_constants]
    names = [entry.name for entry in entries]
    with ExitStack() as closing:
        devices = open_devices(plan.devices, threads_of(plan, [entry.target for entry in entries]))
        for device in devices:
            closing.callback(device.close)
        kernels: list[Kernel] = []
        for entry, misfit, number in zip(entries, misfits, kernel_devices(plan, len(entries)), strict=True):
            make = partial(_load_kernel, entry, files, constants, loaders[entry.toolchain][0], misfit)
            kernels.append(devices[number].worker.call(make) if devices else make())
        exe = Executable(plan, kernels, plan_constants, provenance, names, test, explanation, devices)
        closing.pop_all()  # the executable closes the devices from here on
    return exe


def _load_kernel(
    entry: KernelEntry,
    files: Mapping[str, Array],
    constants: Sequence[Array],
    loader: KernelLoader,
    misfit: str,
) -> Kernel:
    weights = {name: constants[number] for name, number in entry.weights.items()}
    model = files[entry.source].tobytes()
    source = KernelSource(entry.toolchain, entry.target, model, weights, entry.pass_settings)
    blob = files[entry.blob] if not misfit and entry.blob is not None else None
    try:
        if blob is not None and isinstance(loader, LoadsInPlace):
            return loader.load_in_place(source, blob.data)
        return loader.load(source, None if blob is None else blob.tobytes())
    except MissingToolchainError as error:  # the compiled form would have needed less
        if misfit:
            error.add_note(misfit)
        raise


def read_explanation(path: str | os.PathLike[str]) -> str | None:
    """Read the explanation of an artifact, as text for `intarsia explain`; None if it has none.

    Only the manifest and the explanation are read, so that it works for artifacts of other machines.

    Raises:
        ArtifactError: It is no artifact, or damaged, unsafe, or of another version.
    """
    artifact = Path(path)
    reader = open_artifact(artifact)
    manifest = Manifest.from_bytes(reader.read(MANIFEST, MOST_BYTES).tobytes(), artifact)
    if EXPLANATION not in manifest.files:
        return None
    files = reader.read_all({EXPLANATION: manifest.files[EXPLANATION]})
    return _decode_text(artifact, EXPLANATION, files[EXPLANATION])


def read_host(path: str | os.PathLike[str]) -> dict[str, object]:
    """Read the facts of the machine that an artifact was built on (`Host.to_json`); empty if it has none.

    Only the manifest is read, so that it works for artifacts of other machines.

    Raises:
        ArtifactError: It is no artifact, or damaged, or of another version.
    """
    artifact = Path(path)
    content = open_artifact(artifact).read(MANIFEST, MOST_BYTES).tobytes()
    return dict(Manifest.from_bytes(content, artifact).host)


def _decode_text(path: Path, name: str, data: Array) -> str:
    try:
        return data.tobytes().decode()
    except UnicodeDecodeError as error:
        raise damaged(path, f"{name} is not UTF-8") from error


def _read_self_test(path: Path, manifest: Manifest, files: Mapping[str, Array]) -> SelfTest | None:
    if manifest.self_test is None:
        return None
    where = f"{SELF_TEST} of {path}"
    parts = [
        tuple(read_tensors(files[SELF_TEST], {tensor.name: tensor for tensor in part}, where).values())
        for part in manifest.self_test
    ]
    return SelfTest(parts[0], parts[1])
