"""How a run is repeated."""

from __future__ import annotations

import shlex

from intarsia.report.explanation import Explanation

_DEFAULTS = {"--budget": "60s", "--seed": "0", "--dynamic": "eager"}


def command(explanation: Explanation) -> str:
    """Return the command that repeats a run; "" if its request is not recorded.

    The path of the model is not recorded: its name stands in its place.
    """
    request = explanation.request
    if request is None:
        return ""
    words = ["intarsia", "tune", explanation.model]
    for flag, value in request.flags:
        if _DEFAULTS.get(flag) != value:
            words += [flag, value] if value else [flag]
    return shlex.join(words)
