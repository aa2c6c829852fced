"""Wrong results, kept beside their workload: where two engines agree, the reference may be what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy.typing as npt

from intarsia.measure.arrays.array_files import read_arrays, read_facts, write_arrays
from intarsia.measure.judge.gate import Gate
from intarsia.measure.workload_folder import WorkloadFolder
from intarsia.support.digest import digest_text
from intarsia.support.files import write_atomically

Array = npt.NDArray[Any]

_FOLDER: Final = "wrong"
_OUTPUTS: Final = "outputs"


def note_wrong_answer(workload: WorkloadFolder, target: str, outputs: Sequence[Array], gate: Gate) -> str:
    """Store a wrong result, and return another target with the same result.

    Args:
        workload: Workload of the result.
        target: Text of the target that computed it.
        outputs: The wrong outputs.
        gate: Gate with the expected outputs.

    Returns:
        Text of another target that gave the same, "" if there is none.
    """
    folder = workload.path / _FOLDER
    folder.mkdir(exist_ok=True)
    others = {other: result for other, result in _stored_results(workload) if other != target}
    pairs = (gate.agreeing({target: outputs, other: result}) for other, result in others.items())
    agreeing = next((pair for pair in pairs if pair is not None), ("", ""))
    with write_atomically(folder / digest_text((target,))) as temporary:
        temporary.mkdir()
        arrays = {f"output{number}": array for number, array in enumerate(outputs)}
        write_arrays(temporary, _OUTPUTS, arrays, {"target": target})
    return next((name for name in agreeing if name != target), "")


def _stored_results(workload: WorkloadFolder) -> Iterator[tuple[str, list[Array]]]:
    for path in sorted((workload.path / _FOLDER).iterdir()):
        if path.name.startswith("."):
            continue  # another process is writing it
        arrays = read_arrays(path, _OUTPUTS)
        ordered = [arrays[f"output{number}"] for number in range(len(arrays))]
        yield read_facts(path, _OUTPUTS)["target"], ordered
