"""Results of models of the zoo in float64, on the CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from benchmarks.float64_models import in_float64
from onnx import ModelProto

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx

Array = npt.NDArray[Any]
TARGET = "cpu -toolchain=native"


def results_in_float64(model: ModelProto, inputs: Mapping[str, Array]) -> list[Array]:
    """Return the results of a model whose float32 tensors are float64.

    They are those of native on the CPU: onnxruntime has no float64 kernels for Conv and Erf. Other schedules,
    other functions and another precision than on the GPU compute them.

    Args:
        model: The model.
        inputs: Its inputs by name.

    Raises:
        IntarsiaError: Native has no kernel for an operator in float64.
    """
    wide = {
        name: array.astype(np.float64) if array.dtype == np.float32 else array
        for name, array in inputs.items()
    }
    with build(from_onnx(in_float64(model)), TARGET) as executable:
        results = executable.run_flat(*(wide[info.name] for info in executable.inputs))
        return [np.array(result) for result in results]


def relative_error(results: Sequence[Array], exact: Sequence[Array]) -> float:
    """Return the greatest relative error of a result by norm."""
    errors = []
    for result, reference in zip(results, exact, strict=True):
        difference = np.linalg.norm(result.astype(np.float64).ravel() - reference.astype(np.float64).ravel())
        errors.append(float(difference / max(float(np.linalg.norm(reference.ravel())), 1e-30)))
    return max(errors)
