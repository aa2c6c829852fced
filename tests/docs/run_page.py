"""Run the code of one page, in its order, in this process: `python run_page.py NAME < blocks > outputs`.

Python blocks share their names, as if they were typed one after the other. Commands of console blocks run
in bash. Input and output are JSON: a list of [language, line, texts] in, a list of lists of outputs out.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import sys
from typing import Any

_PROGRESS = re.compile(r"^\[\d+\.\ds\] .*\n", re.MULTILINE)


def run_page(name: str, blocks: list[tuple[str, int, list[str]]]) -> list[list[str]]:
    """Return what each text of each block prints.

    Args:
        name: Name of the page, for tracebacks.
        blocks: Language, number of the first line, and Python code or commands.

    Raises:
        RuntimeError: A command failed, and the next one does not ask for its exit code by `echo $?`.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    outputs = []
    for language, line, texts in blocks:
        if language == "python":
            outputs.append([_run_python("\n" * (line - 1) + text, name, names) for text in texts])
        else:
            outputs.append(_run_commands(texts, f"{name}, line {line}"))
    return outputs


def _run_python(code: str, name: str, names: dict[str, Any]) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, name, "exec"), names)
    return out.getvalue()


def _run_commands(texts: list[str], where: str) -> list[str]:
    outputs = []
    code = 0
    for text, following in zip(texts, [*texts[1:], ""], strict=True):
        # The subshell makes the exit code of the command before it the value of $?.
        done = subprocess.run(
            ["bash", "-c", f"(exit {code})\n{text}"], capture_output=True, text=True, check=False
        )
        code = done.returncode
        # Progress and notes go to stderr, and depend on the machine; errors are what a reader is shown.
        errors = _PROGRESS.sub("", done.stderr) if code else ""
        outputs.append(done.stdout + errors)
        if code and following != "echo $?":
            raise RuntimeError(f"{where}: {text} ended with {code}:\n{outputs[-1]}")
    return outputs


if __name__ == "__main__":
    json.dump(run_page(sys.argv[1], json.load(sys.stdin)), sys.stdout)
