"""An environment of its own for apache-tvm, and the processes that search and time kernels there.

The project does not depend on apache-tvm. The environment is created once by `python -m venv` and pip,
outside the repository.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

REQUIREMENTS = (
    "apache-tvm==0.27.0.post1",
    "apache-tvm-ffi==0.1.14.post0",  # with 0.1.15 every search of 0.27.0.post1 ends in a segmentation fault
    "xgboost-cpu==3.2.0",
    *("numpy", "scipy", "cloudpickle", "psutil"),
)
SCRIPT = Path(__file__).with_name("tvm_search.py")
READY = "ready.json"


@dataclass(frozen=True)
class TvmEnvironment:
    """A Python environment that has apache-tvm.

    Attributes:
        python: Path of its Python.
    """

    python: Path

    @classmethod
    def install(cls, folder: Path) -> Self:
        """Install the environment into a folder, unless it is there; it takes a few hundred MB.

        Raises:
            subprocess.CalledProcessError: Creating or installing failed, for example without a network.
        """
        environment, ready = cls(folder / "bin" / "python"), folder / READY
        requirements = json.dumps(REQUIREMENTS)
        if not ready.exists() or ready.read_text("utf-8") != requirements:
            print(f"installing {REQUIREMENTS[0]} into {folder}", file=sys.stderr)
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
            pip = [str(environment.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, *REQUIREMENTS], check=True)
            ready.write_text(requirements, "utf-8")
        return environment

    def search(
        self, task: Mapping[str, Any], folder: Path, options: Sequence[str]
    ) -> Iterator[dict[str, Any]]:
        """Search one task, and yield the lines of `tvm_search.py search` as they are printed.

        Raises:
            RuntimeError: The process failed; the message has the end of its error output.
        """
        command = [
            str(self.python),
            str(SCRIPT),
            "search",
            json.dumps(task),
            "--folder",
            str(folder),
            *options,
        ]
        folder.mkdir(parents=True, exist_ok=True)
        error_file = folder / "errors.txt"
        with (
            error_file.open("w") as errors,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
        ):
            assert process.stdout is not None, "it is a pipe"
            try:
                for line in process.stdout:
                    if line.startswith("{"):  # other lines are its log
                        yield json.loads(line)
            except BaseException:
                process.terminate()
                raise
        if process.returncode:
            raise RuntimeError(
                f"tvm_search.py ended with {process.returncode}: {error_file.read_text()[-2000:]}"
            )

    @contextmanager
    def serve_kernels(self, folders: Sequence[Path], threads: int) -> Iterator[TvmKernels]:
        """Start a process that times the kernels of searches on request, and yield it."""
        command = [str(self.python), str(SCRIPT), "serve", *map(str, folders), "--threads", str(threads)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            kernels = TvmKernels(process)
            kernels.read_answer()
            yield kernels
            assert process.stdin is not None, "it is a pipe"
            process.stdin.close()


@dataclass(frozen=True)
class TvmKernels:
    """Kernels of apache-tvm in a process of their own."""

    process: subprocess.Popen[str]

    def time_call(self, index: int, window: float) -> float:
        """Return the mean seconds of the calls of a kernel that fill a window of time."""
        assert self.process.stdin is not None, "it is a pipe"
        self.process.stdin.write(f"{index} {window}\n")
        self.process.stdin.flush()
        return float(self.read_answer()["cost"])

    def read_answer(self) -> dict[str, Any]:
        """Read the next answer of the process.

        Raises:
            RuntimeError: It has ended.
        """
        assert self.process.stdout is not None, "it is a pipe"
        for line in self.process.stdout:
            if line.startswith("{"):
                return dict(json.loads(line))
        raise RuntimeError("the process that times kernels of apache-tvm has ended")
