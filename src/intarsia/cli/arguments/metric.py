"""Metrics and tolerances on the command line."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any, Final

from intarsia.support.errors import InputError, UsageError

_SUFFIX: Final = ".py"
_HOW: Final = "write --metric FILE.py:FUNCTION, with FUNCTION(outputs, outputs_of_float32, labels)"


def parse_metric(text: str) -> Any:
    """Return the function that `FILE.py:FUNCTION` names, or the name of a metric as it is.

    The file is run.

    Raises:
        InputError: The file cannot be read, or fails.
        UsageError: It has no such function.
    """
    file, _, name = text.rpartition(":")
    if not file.endswith(_SUFFIX):
        if text.endswith(_SUFFIX):
            raise UsageError(f"the metric {text!r} names no function of the file", help=_HOW)
        return text
    if not Path(file).is_file():
        raise InputError(f"there is no file {file}", help=_HOW)
    spec = importlib.util.spec_from_file_location("intarsia_user_metric", file)
    assert spec is not None, "a file of Python has a loader"
    assert spec.loader is not None, "a file of Python has a loader"
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # the file is the user's
        raise InputError(f"{file} failed: {type(error).__name__}: {error}", help=_HOW) from error
    function = getattr(module, name, None)
    if not callable(function):
        raise UsageError(f"{file} has no function {name!r}", help=_HOW)
    return function


def parse_tolerance(text: str | None) -> float | None:
    """Return a tolerance as a fraction: "0.05", or the least ratio of signal to noise, "26dB".

    Raises:
        UsageError: It is no number.
    """
    if text is None:
        return None
    words = text.strip().lower()
    number = words.removesuffix("db")
    try:
        value = float(number)
    except ValueError:
        raise UsageError(
            f"the tolerance {text!r} is no number",
            help="write 0.05 for an error of 5 % of an output, or 26dB for the same as a ratio",
        ) from None
    return value if number == words else float(10 ** (-value / 20))
