"""Gates of the zoo's models, computed once for all processes of a run of the tests."""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Mapping
from pathlib import Path

from intarsia.ir import IRModule
from intarsia.measure.judge.gate import Gate
from intarsia.measure.judge.gate_report import Array

FOLDER = Path(os.environ.get("XDG_CACHE_HOME", tempfile.gettempdir())) / "model-gates"
"""The processes of pytest-xdist share the folder, and it is removed at the end of the run."""


def model_gate(name: str, module: IRModule, inputs: Mapping[str, Array]) -> Gate:
    """Return the gate of a model of the zoo, as it is imported with seed 0 and for inputs of seed 0.

    Args:
        name: The model.
        module: The imported model.
        inputs: `random_inputs` of its main function.
    """
    path = FOLDER / f"{name}.pickle"
    if path.exists():
        gate: Gate = pickle.loads(path.read_bytes())
        return gate
    gate = Gate.for_module(module, inputs)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=FOLDER, delete=False) as file:
        pickle.dump(gate, file)
    Path(file.name).replace(path)
    return gate
