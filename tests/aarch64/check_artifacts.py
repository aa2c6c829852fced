"""Run the self tests of all artifacts in a folder; a program for the emulated machine.

It prints a JSON object: for each artifact its largest error, relative to the bound of its element type, or an
error's text.
"""

import json
import sys
from pathlib import Path

import numpy as np

import intarsia as ia
from intarsia.runtime.executable import Executable

ULPS = 8
"""Allowed difference in units of the last place of an output's largest value: sums have other orders."""


def relative_error(exe: Executable) -> float:
    """Return the largest error of the self test's outputs over its bound; at most 1 is right."""
    test = exe.saved_test
    assert test is not None
    outputs = exe.run_flat(*test.inputs)
    errors = [0.0]
    for actual, expected in zip(outputs, test.outputs, strict=True):
        assert isinstance(actual, np.ndarray)
        assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
        if actual.tobytes() == expected.tobytes() or not expected.size:
            continue
        if expected.dtype.kind in "iub":
            return float("inf")
        left, right = actual.astype(np.float64), expected.astype(np.float64)
        with np.errstate(invalid="ignore"):
            difference = np.abs(left - right)
        difference[(left == right) | (np.isnan(left) & np.isnan(right))] = 0
        finite = np.abs(right[np.isfinite(right)])
        scale = float(finite.max(initial=1.0)) * ULPS * float(np.finfo(np.float32).eps)
        if expected.dtype.itemsize == 2:
            scale = float(finite.max(initial=1.0)) * 2.0**-7
        errors.append(float(np.nan_to_num(difference, nan=np.inf).max()) / scale)
    return max(errors)


def main() -> None:
    results: dict[str, object] = {}
    for path in sorted(Path(sys.argv[1]).glob("*.intarsia")):
        try:
            with ia.load(path, locked=True) as exe:
                results[path.stem] = relative_error(exe)
        except Exception as error:  # the report names whatever happened
            results[path.stem] = f"{type(error).__name__}: {error}"
    sys.stdout.write(json.dumps(results) + "\n")


if __name__ == "__main__":
    main()
