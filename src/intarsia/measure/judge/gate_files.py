"""Store gates in files: computed once, used by every process that runs candidates."""

from __future__ import annotations

from pathlib import Path

from intarsia.measure.arrays.array_files import read_arrays, read_facts, write_arrays
from intarsia.measure.judge.gate import Gate
from intarsia.measure.judge.output_check import CHECK_KINDS


def write_gate(folder: Path, name: str, gate: Gate) -> None:
    """Write a gate into a folder; OSError if the file system refuses.

    Args:
        folder: Path of the folder.
        name: Name of its files.
        gate: The gate.
    """
    arrays = {f"expected:{number}": array for number, array in enumerate(gate.expected)}
    for number, check in enumerate(gate.checks):
        arrays |= {f"check{number}:{key}": array for key, array in check.arrays().items()}
    facts = {
        "outputs": gate.names,
        "checks": [{"kind": check.kind, **check.facts()} for check in gate.checks],
        "reference": gate.reference,
        "is_proven": gate.is_proven,
    }
    write_arrays(folder, name, arrays, facts)


def read_gate(folder: Path, name: str) -> Gate:
    """Read a gate, with its arrays mapped from the file."""
    facts, arrays = read_facts(folder, name), read_arrays(folder, name)
    names = tuple(facts["outputs"])
    expected = tuple(arrays[f"expected:{number}"] for number in range(len(names)))
    checks = tuple(
        CHECK_KINDS[item["kind"]].restored(
            item,
            {
                key.removeprefix(f"check{number}:"): array
                for key, array in arrays.items()
                if key.startswith(f"check{number}:")
            },
            expected,
        )
        for number, item in enumerate(facts["checks"])
    )
    return Gate(names, expected, checks, facts["reference"], facts["is_proven"])
