"""An environment of its own for apache-tvm, and the processes that search and time kernels there.

The project does not depend on it: the environment is made, once, by `python -m venv` and pip, outside the
repository.
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
    """A Python that has apache-tvm.

    Attributes:
        python: Its executable.
    """

    python: Path

    @classmethod
    def made(cls, folder: Path) -> Self:
        """The environment of a folder; a few hundred MB, made the first time.

        Raises:
            subprocess.CalledProcessError: It cannot be made, for want of a network for instance.
        """
        found, ready = cls(folder / "bin" / "python"), folder / READY
        wanted = json.dumps(REQUIREMENTS)
        if not ready.exists() or ready.read_text("utf-8") != wanted:
            print(f"installing {REQUIREMENTS[0]} into {folder}", file=sys.stderr)
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
            pip = [str(found.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, *REQUIREMENTS], check=True)
            ready.write_text(wanted, "utf-8")
        return found

    def search(
        self, task: Mapping[str, Any], folder: Path, options: Sequence[str]
    ) -> Iterator[dict[str, Any]]:
        """Search one task; what `tvm_search.py search` says, as it says it.

        Raises:
            RuntimeError: The process failed; with the end of what it said.
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
        said = folder / "errors.txt"
        with (
            said.open("w") as errors,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
        ):
            assert process.stdout is not None, "it is a pipe"
            try:
                for line in process.stdout:
                    if line.startswith("{"):  # its log is there too
                        yield json.loads(line)
            except BaseException:
                process.terminate()
                raise
        if process.returncode:
            raise RuntimeError(f"tvm_search.py ended with {process.returncode}: {said.read_text()[-2000:]}")

    @contextmanager
    def serving(self, folders: Sequence[Path], threads: int) -> Iterator[TvmKernels]:
        """Kernels that searches have left, in a process that is told when to run them."""
        command = [str(self.python), str(SCRIPT), "serve", *map(str, folders), "--threads", str(threads)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            kernels = TvmKernels(process)
            kernels.answer()
            yield kernels
            assert process.stdin is not None, "it is a pipe"
            process.stdin.close()


@dataclass(frozen=True)
class TvmKernels:
    """Kernels in their process."""

    process: subprocess.Popen[str]

    def seconds(self, index: int, window: float) -> float:
        """Seconds of a call of a kernel, the mean of as many calls as fill a window of time."""
        assert self.process.stdin is not None, "it is a pipe"
        self.process.stdin.write(f"{index} {window}\n")
        self.process.stdin.flush()
        return float(self.answer()["cost"])

    def answer(self) -> dict[str, Any]:
        """What the process says next.

        Raises:
            RuntimeError: It has ended.
        """
        assert self.process.stdout is not None, "it is a pipe"
        for line in self.process.stdout:
            if line.startswith("{"):
                return dict(json.loads(line))
        raise RuntimeError("the process that times kernels of apache-tvm has ended")
