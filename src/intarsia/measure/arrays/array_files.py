"""Store arrays and facts about them in two files of a folder; reading maps them into memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from intarsia.runtime.safetensors_file import StoredTensor, read_tensors, stored, write_tensors

Array = npt.NDArray[Any]


def write_arrays(
    folder: Path, name: str, arrays: Mapping[str, Array], facts: Mapping[str, object] | None = None
) -> None:
    """Write arrays and facts (plain JSON values); raises OSError if the file system refuses."""
    listed = [asdict(stored(key, array)) for key, array in arrays.items()]
    (folder / f"{name}.json").write_text(json.dumps({**(facts or {}), "tensors": listed}))
    with (folder / f"{name}.safetensors").open("wb") as file:
        write_tensors(file, arrays)


def read_facts(folder: Path, name: str) -> dict[str, Any]:
    """Read the facts that were written under a name."""
    facts: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())
    return facts


def read_arrays(folder: Path, name: str, prefix: str = "") -> Mapping[str, Array]:
    """Map the arrays that were written under a name, only those with names that begin with `prefix`."""
    wanted = {
        item["name"]: StoredTensor(item["name"], item["dtype"], tuple(item["shape"]))
        for item in read_facts(folder, name)["tensors"]
        if item["name"].startswith(prefix)
    }
    path = folder / f"{name}.safetensors"
    return read_tensors(np.memmap(path, np.uint8, "r"), wanted, path.name)
