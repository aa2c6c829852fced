"""Kernels for a CPU that the target names: built anywhere, and run where the CPU has what they need."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.emulated_cpus import CPUS

import intarsia as ia
from intarsia.ir import DType, Function, IRModule, SymbolicDim, TensorType, Var, with_dim_ranges
from intarsia.ir.dim_range import DimRange
from intarsia.native.machine.isa import Isa
from intarsia.native.object_code.elf_file import read_object_file
from intarsia.op import call
from intarsia.runtime.artifact_format import MANIFEST
from intarsia.runtime.artifact_load import load
from intarsia.runtime.artifact_reader import open_artifact
from intarsia.runtime.kernel import Kernel
from intarsia.runtime.manifest import Manifest
from intarsia.support.errors import ArtifactError, ExecutionError, UsageError
from intarsia.target import Target
from intarsia.toolchain.native.blob import read_blob
from intarsia.toolchain.native.foreign_kernel import ForeignKernel
from intarsia.toolchain.native.kernel import NativeKernel

ARM = "cpu -toolchain=native -threads=2 -mcpu=neoverse-n1"
OLD = "cpu -toolchain=native -threads=1 -mcpu=nehalem"


def program(batch: SymbolicDim | int = 4) -> IRModule:
    x = Var("x", checked_type=TensorType((batch, 8), DType.FLOAT32))
    return IRModule.from_expr(Function((x,), call("Tanh", x)))


def kernel_of(exe: ia.Executable) -> Kernel:
    (kernel,) = exe.contents.kernels
    return kernel


def manifest_of(path: Path) -> Manifest:
    return Manifest.from_bytes(open_artifact(path).read(MANIFEST, 1 << 20).tobytes(), path)


def test_kernels_of_another_architecture_are_saved_and_not_run(tmp_path: Path) -> None:
    exe = ia.build(program(), ARM)
    assert isinstance(kernel_of(exe), ForeignKernel)
    with pytest.raises(ExecutionError) as caught:
        exe(np.zeros((4, 8), np.float32))
    assert "native code for neoverse-n1 does not run here: this machine has no aarch64" in str(caught.value)
    exe.save(tmp_path / "arm.intarsia")
    (entry,) = manifest_of(tmp_path / "arm.intarsia").kernels
    assert (entry.architecture, entry.isa) == ("aarch64", ())
    with pytest.raises(ArtifactError, match="was compiled for aarch64, found x86_64"):
        load(tmp_path / "arm.intarsia", locked=True)


def test_object_code_is_for_the_named_cpu() -> None:
    blob = kernel_of(ia.build(program(), ARM)).blob()
    assert blob is not None
    with pytest.raises(ArtifactError, match=r"native code for aarch64 \(neoverse-n1\) does not run here"):
        read_blob(blob, {})
    machine = Isa("aarch64", "generic", ("neon", "fullfp16", "dotprod", "lse"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Isa, "host_without_compiler", lambda: machine)
        region = read_blob(blob, {})
    assert region.isa.cpu == "neoverse-n1"
    codes = [region.driver, *(kernel.object_code for kernel in region.kernels)]
    assert {read_object_file(code).architecture for code in codes} == {"aarch64"}


def test_batches_of_any_size_are_compiled_for_another_cpu(tmp_path: Path) -> None:
    module = with_dim_ranges(program(SymbolicDim("n")), {"n": DimRange(1, 16)})
    exe = ia.build(module, ARM)
    assert isinstance(kernel_of(exe), ForeignKernel)
    exe.save(tmp_path / "arm.intarsia")
    assert manifest_of(tmp_path / "arm.intarsia").kernels[0].architecture == "aarch64"


@pytest.mark.skipif(not Isa.host_without_compiler().fits(CPUS["nehalem"]), reason="no SSE 4.2 here")
def test_code_for_an_older_cpu_runs_here_and_where_instruction_sets_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exe = ia.build(program(), OLD)
    kernel = kernel_of(exe)
    assert isinstance(kernel, NativeKernel)
    assert kernel.named_architecture == "x86_64"
    x = np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)
    np.testing.assert_allclose(exe(x), np.tanh(x), rtol=1e-6)
    exe.save(tmp_path / "old.intarsia")
    monkeypatch.setattr("intarsia.target.host.instruction_sets", lambda cpuinfo: ("avx", "ssse3"))
    np.testing.assert_array_equal(load(tmp_path / "old.intarsia", locked=True)(x), exe(x))


def test_an_unknown_cpu_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(
        UsageError, match="target option -mcpu is 'pentium'; expected nehalem or sandybridge or"
    ):
        Target("cpu -toolchain=native -mcpu=pentium")
