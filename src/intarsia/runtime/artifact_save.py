"""Write an executable to disk (DESIGN section 10)."""

from __future__ import annotations

import os
from pathlib import Path

from intarsia.runtime.artifact_format import (
    CONSTANTS,
    EXPLANATION,
    MANIFEST,
    PROGRAM,
    SELF_TEST,
    ArtifactFormat,
    blob_file,
    source_file,
)
from intarsia.runtime.artifact_writer import ArtifactWriter, artifact_writer
from intarsia.runtime.constant_table import ConstantTable
from intarsia.runtime.contents import Contents
from intarsia.runtime.kernel import Array, CrossCompiledKernel, Kernel
from intarsia.runtime.manifest import KernelEntry, Manifest
from intarsia.runtime.provenance import Provenance
from intarsia.runtime.safetensors_file import StoredTensor, stored, write_tensors
from intarsia.runtime.self_test import SelfTest
from intarsia.runtime.toolchain_version import installed_version
from intarsia.target.host import Host


def save_artifact(
    contents: Contents,
    provenance: Provenance,
    path: str | os.PathLike[str],
    self_test: SelfTest | None,
    form: ArtifactFormat | None,
) -> None:
    """Write an artifact atomically; see `Executable.save`.

    Raises:
        OutputError: The file system refused.
    """
    destination = Path(path)
    if form is None:
        is_folder = os.fspath(path).endswith(("/", os.sep)) or destination.is_dir()
        form = ArtifactFormat.DIRECTORY if is_folder else ArtifactFormat.ZIP
    with artifact_writer(destination, ArtifactFormat(form)) as writer:
        _write(writer, contents, provenance, self_test)


def _write(
    writer: ArtifactWriter, contents: Contents, provenance: Provenance, self_test: SelfTest | None
) -> None:
    table = ConstantTable()
    program_constants = tuple(table.number(array) for array in provenance.program_constants)
    plan_constants = tuple(table.number(array) for array in contents.constants)
    writer.add(PROGRAM, provenance.program.encode())
    host = Host.detect()
    kernels = tuple(
        _write_kernel(writer, index, kernel, name, table, host)
        for index, (kernel, name) in enumerate(zip(contents.kernels, contents.kernel_names, strict=True))
    )
    if contents.explanation is not None:
        writer.add(EXPLANATION, contents.explanation.encode())
    with writer.file(CONSTANTS) as stream:
        write_tensors(stream, table.named())
    manifest = Manifest(
        files=writer.files,
        plan=contents.plan,
        constants=tuple(stored(name, array) for name, array in table.named().items()),
        plan_constants=plan_constants,
        program_constants=program_constants,
        kernels=kernels,
        model=provenance.model,
        created_by=provenance.created_by,
        host=dict(provenance.host),
        isa=provenance.isa,
        self_test=None if self_test is None else _write_self_test(writer, self_test),
    )
    writer.add(MANIFEST, manifest.to_bytes())


def _write_kernel(
    writer: ArtifactWriter, index: int, kernel: Kernel, name: str, table: ConstantTable, host: Host
) -> KernelEntry:
    source, blob = kernel.source, kernel.blob()
    file = source_file(index, source.toolchain)
    writer.add(file, source.model)
    if blob is not None:
        writer.add(blob_file(index), blob)
    named = kernel.named_architecture if isinstance(kernel, CrossCompiledKernel) else None
    return KernelEntry(
        name=name,
        toolchain=source.toolchain,
        toolchain_version=installed_version(source.toolchain),
        target=source.target,
        source=file,
        weights={weight: table.number(array) for weight, array in source.weights.items()},
        blob=None if blob is None else blob_file(index),
        architecture=named or host.architecture,
        isa=host.isa if named is None else (),
        pass_settings=source.pass_settings,
    )


def _write_self_test(
    writer: ArtifactWriter, test: SelfTest
) -> tuple[tuple[StoredTensor, ...], tuple[StoredTensor, ...]]:
    inputs: dict[str, Array] = {f"input{index}": array for index, array in enumerate(test.inputs)}
    outputs: dict[str, Array] = {f"output{index}": array for index, array in enumerate(test.outputs)}
    with writer.file(SELF_TEST) as stream:
        write_tensors(stream, inputs | outputs)
    listed = [tuple(stored(name, array) for name, array in part.items()) for part in (inputs, outputs)]
    return listed[0], listed[1]
