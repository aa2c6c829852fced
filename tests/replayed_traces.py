"""Traces that are replayed in a process that has seen nothing of how they were made."""

from __future__ import annotations

import subprocess
import sys

from intarsia.tune import Trace

SCRIPT = """
import sys
from importlib import import_module
from intarsia.ir import structural_digest
from intarsia.tune import Trace
home, name, *arguments = sys.argv[1:]
program = getattr(import_module(home), name)(*map(int, arguments))
print(structural_digest(Trace.from_json(sys.stdin.read(), program).out_mod))
"""


def replayed_digest(trace: Trace, home: str, name: str, *arguments: int) -> str:
    """The digest of the program that a trace leads to in a new process.

    Args:
        trace: The trace.
        home: Module with the function that makes the program it begins with.
        name: Name of that function.
        arguments: Arguments of that function.
    """
    command = [sys.executable, "-c", SCRIPT, home, name, *map(str, arguments)]
    found = subprocess.run(command, input=trace.to_json(), capture_output=True, text=True, check=True)
    return found.stdout.strip()
