"""A process that runs cases as it is told, line by line, until it is told no more, or dies of one.

    python -m tests.backend.worker FOLDER

In:  {"case": "test_relu", "columns": ["onnx", "auto"]}
Out: ready, once; then a verdict for each column, in order.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TextIO

from tests.backend.cases import CaseStore
from tests.backend.pool import READY
from tests.backend.verdict import Column


def main() -> None:
    """Serve until the input ends."""
    out = _private_output()
    from tests.backend.judging import judge

    _send(out, READY)
    store = CaseStore(Path(sys.argv[1]))
    for line in sys.stdin:
        request = json.loads(line)
        case = store.read(request["case"])
        for column in map(Column, request["columns"]):
            _send(out, json.dumps(judge(case, column).to_json()))


def _private_output() -> TextIO:
    """Standard output for us alone: what engines print goes to standard error."""
    own = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(own, "w")


def _send(out: TextIO, line: str) -> None:
    out.write(line + "\n")
    out.flush()


if __name__ == "__main__":
    main()
