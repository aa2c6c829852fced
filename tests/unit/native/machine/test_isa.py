"""Instruction sets."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from intarsia.native.machine.isa import Isa
from intarsia.support.errors import ArtifactError, CompileError
from intarsia.target.cache_sizes import CacheSizes
from intarsia.target.cpu import usable_cores
from intarsia.target.machine_model import MachineModel

ZEN3 = Isa("x86_64", "znver3", ("avx2", "avx", "fma", "f16c"), ("avx512f",))
SERVER = Isa(
    "x86_64", "sapphirerapids", ("avx", "avx2", "fma", "f16c", "avx512f", "avx512vnni", "avx512bf16")
)
NEOVERSE = Isa("aarch64", "neoverse-n1", ("neon", "dotprod", "fullfp16"))
OLD = Isa("x86_64", "x86-64", ())

CPUINFO = """processor\t: 0
model name\t: Some CPU
flags\t\t: fpu sse sse2 pni ssse3 sse4_1 sse4_2 abm bmi1 bmi2 avx avx2 fma f16c avx512_vnni avx_vnni vmx aes
"""


def test_text_says_all_and_reads_back() -> None:
    assert str(ZEN3) == "x86_64 znver3 +avx +avx2 +f16c +fma -avx512f"
    for isa in (ZEN3, SERVER, NEOVERSE, OLD, Isa.host()):
        assert Isa.parse(str(isa)) == isa


@pytest.mark.parametrize(
    "text", ["", "x86_64", "x86_64 znver3 avx2", "x86_64 znver3 +avx2\n", "x86_64  +avx2"]
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ArtifactError, match="not an instruction set"):
        Isa.parse(text)


def test_digest_tells_code_apart_and_not_cores() -> None:
    assert len({isa.digest for isa in (ZEN3, SERVER, NEOVERSE, OLD)}) == 4
    many = Isa(ZEN3.architecture, ZEN3.cpu, ZEN3.features, ZEN3.missing, cores=64)
    assert many == ZEN3
    assert many.digest == ZEN3.digest


@pytest.mark.parametrize(
    ("isa", "width", "registers"), [(OLD, 16, 16), (ZEN3, 32, 16), (SERVER, 64, 32), (NEOVERSE, 16, 32)]
)
def test_vectors(isa: Isa, width: int, registers: int) -> None:
    assert (isa.vector_bytes, isa.vector_registers) == (width, registers)


def test_instructions() -> None:
    def facts(isa: Isa) -> tuple[bool, ...]:
        return (
            isa.has_fma,
            isa.has_f16c,
            isa.has_avx512,
            isa.has_int8_dot,
        )

    assert facts(OLD) == (False, False, False, False)
    assert facts(ZEN3) == (True, True, False, False)
    assert facts(SERVER) == (True, True, True, True)
    assert facts(NEOVERSE) == (True, True, False, True)


def test_code_runs_where_all_its_features_are() -> None:
    assert SERVER.fits(ZEN3)
    assert SERVER.fits(OLD)
    assert not ZEN3.fits(SERVER)
    assert not ZEN3.fits(NEOVERSE)
    assert not NEOVERSE.fits(OLD)
    assert ZEN3.lacks(SERVER) == ("avx512bf16", "avx512f", "avx512vnni")
    assert ZEN3.lacks(NEOVERSE) == ("aarch64",)


def test_refusal_names_what_is_missing() -> None:
    SERVER.require(ZEN3)
    with pytest.raises(ArtifactError) as caught:
        ZEN3.require(SERVER)
    assert str(caught.value) == (
        "native code for x86_64 (sapphirerapids) does not run here: this machine has no "
        "avx512bf16, avx512f, avx512vnni\nhelp: build it again on this machine"
    )


def test_linux_names_are_translated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text(CPUINFO)
    expected = {
        *("sse", "sse2", "sse3", "ssse3", "sse4.1", "sse4.2", "lzcnt", "bmi", "bmi2"),
        *("avx", "avx2", "fma", "f16c", "avx512vnni", "avxvnni"),
    }
    assert set(Isa.host_without_compiler(tmp_path).features) == expected


def test_arm_names_are_translated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text("processor\t: 0\nFeatures\t: fp asimd atomics asimddp i8mm\n")
    isa = Isa.host_without_compiler(tmp_path)
    assert isa == Isa("aarch64", "generic", ("neon", "lse", "dotprod", "i8mm"))


@pytest.fixture
def real_host(pytestconfig: pytest.Config) -> None:
    """Skip what is about the CPU of this machine when the suite runs as if on another."""
    if pytestconfig.getoption("--isa"):
        pytest.skip("--isa puts another CPU in the place of this machine's")


@pytest.mark.usefixtures("real_host")
def test_host_has_what_it_is_compiled_for() -> None:
    host = Isa.host()
    assert host.features
    assert not set(host.features) & set(host.missing)
    assert host.is_of_host
    assert Isa.host_without_compiler().fits(host)


@pytest.mark.skipif(sys.platform != "linux", reason="affinity is Linux's")
def test_cores_are_those_that_may_be_used() -> None:
    assert Isa.host().cores == usable_cores(Path("/")) <= len(os.sched_getaffinity(0))


@pytest.mark.usefixtures("real_host")
def test_what_the_system_does_not_name_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Isa.host()
    dropped = host.features[0]
    fewer = Isa(host.architecture, "generic", host.features[1:])
    monkeypatch.setattr(Isa, "host_without_compiler", lambda: fewer)
    assert dropped not in Isa.host().features
    assert dropped in Isa.host().missing


def test_other_systems_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    with pytest.raises(CompileError, match="no native kernels on Darwin: they need Linux"):
        Isa.host_without_compiler()
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(
        CompileError, match="no native kernels for 'riscv64': they are made for aarch64 and x86_64"
    ):
        Isa.host_without_compiler()


def test_caches_are_no_part_of_the_instruction_set() -> None:
    host = Isa.host()
    other = replace(host, machine=MachineModel(caches=CacheSizes(1, 2, 3)))
    assert other == host
    assert other.digest == host.digest
    assert host.caches == Isa.host_without_compiler().caches == CacheSizes.host()
