"""Running the command line: as a process of its own, or quickly within this one."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from intarsia.cli.exit import run_command_line

PROGRAM = (sys.executable, "-m", "intarsia")


@dataclass(frozen=True)
class Outcome:
    """How a command line ended, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The JSON document on stdout; nothing may be on stderr."""
        assert self.err == ""
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    """This process's, without what colours or widens the output."""
    kept = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "FORCE_COLOR"}}
    return {**kept, **extra}


def started(
    *arguments: str,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    before: Callable[[], object] | None = None,
) -> subprocess.Popen[str]:
    """A process of the command line with its output in pipes."""
    return subprocess.Popen(
        [*PROGRAM, *arguments],
        cwd=cwd,
        env=environment(env or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=before,  # noqa: PLW1509 - it sets a limit of the process and does nothing else
    )


def process(
    *arguments: str,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    before: Callable[[], object] | None = None,
) -> Outcome:
    """Run the command line as a user does."""
    child = started(*arguments, cwd=cwd, env=env, before=before)
    # Only against hanging: a run with a budget of a minute takes several on a busy machine.
    out, err = child.communicate(timeout=600)
    return Outcome(child.returncode, out, err)


def within(arguments: Sequence[str]) -> Outcome:
    """Run the command line in this process, in its current folder."""
    out, err = io.StringIO(), io.StringIO()
    return Outcome(run_command_line(arguments, out, err), out.getvalue(), err.getvalue())
