"""Families of CPUs and their defaults."""

from __future__ import annotations

import pytest

from intarsia.target.machine_families import FAMILIES, family_model, machine_family
from intarsia.target.machine_model import MachineModel


@pytest.mark.parametrize(
    ("vendor", "family", "model", "name"),
    [
        ("AuthenticAMD", 23, 1, "generic"),
        ("AuthenticAMD", 23, 49, "znver2"),
        ("AuthenticAMD", 25, 1, "znver3"),
        ("AuthenticAMD", 25, 80, "znver3"),
        ("AuthenticAMD", 25, 17, "znver4"),
        ("AuthenticAMD", 25, 97, "znver4"),
        ("AuthenticAMD", 26, 2, "znver5"),
        ("AuthenticAMD", 26, 36, "generic"),
        ("AuthenticAMD", 26, 68, "znver5"),
        ("AuthenticAMD", 27, 1, "generic"),
        ("GenuineIntel", 6, 60, "haswell"),
        ("GenuineIntel", 6, 79, "haswell"),
        ("GenuineIntel", 6, 158, "skylake"),
        ("GenuineIntel", 6, 85, "skylake-avx512"),
        ("GenuineIntel", 6, 106, "icelake-server"),
        ("GenuineIntel", 6, 143, "sapphirerapids"),
        ("CentaurHauls", 6, 85, "generic"),
    ],
)
def test_x86_models(vendor: str, family: int, model: int, name: str) -> None:
    cpuinfo = {"vendor_id": vendor, "cpu family": str(family), "model": str(model)}
    assert machine_family(cpuinfo) == name


def test_arm_parts() -> None:
    assert machine_family({"CPU implementer": "0x41", "CPU part": "0xd0c"}) == "neoverse-n1"
    assert machine_family({"CPU implementer": "0x41", "CPU part": "0xd40"}) == "generic"


def test_no_facts_are_no_family() -> None:
    assert machine_family({}) == "generic"
    assert machine_family({"vendor_id": "AuthenticAMD", "cpu family": "x", "model": "1"}) == "generic"
    assert family_model("unheard of") == MachineModel()


@pytest.mark.parametrize(
    ("family", "vector_bytes", "sums"),
    [
        ("znver2", 32, 10),
        ("znver3", 32, 8),
        ("znver4", 32, 8),
        ("znver4", 64, 4),
        ("haswell", 32, 10),
        ("skylake", 32, 8),
        ("skylake-avx512", 64, 8),
        ("icelake-server", 64, 8),
        ("sapphirerapids", 64, 8),
        ("neoverse-n1", 16, 8),
    ],
)
def test_sums_of_families(family: str, vector_bytes: int, sums: int) -> None:
    assert FAMILIES[family].independent_sums(vector_bytes) == sums


def test_each_family_has_its_name() -> None:
    assert all(model.family == name for name, model in FAMILIES.items())
