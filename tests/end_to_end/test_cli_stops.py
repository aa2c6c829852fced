"""How the command line ends early: signals, full disks, closed pipes, missing engines.

Nothing half-written stays behind.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.end_to_end.command_line import PROGRAM, Outcome, environment, process, started

from intarsia.measure.database import Database

pytestmark = pytest.mark.processes

TUNE = ("tune", "zoo:mnist", "--target", "reference", "--budget")


def tuning(folder: Path) -> subprocess.Popen[str]:
    """A process that has just begun to race two candidates, for a long time.

    A candidate that seems over three times as slow, as when the machine is disturbed, does not race: another
    process is started.
    """
    same = "cpu -toolchain=onnxruntime -threads=2"
    targets = ("--target", "onnxruntime", "--target", same, "--trials", "2")
    database = folder / "kept" / "measurements.db"
    for _ in range(5):
        database.parent.mkdir()
        child = started(
            *("tune", "zoo:mnist", *targets, "--budget", "60", "--database", str(database)), cwd=folder
        )
        assert child.stderr is not None
        for line in child.stderr:
            if "racing" in line:
                return child
        child.communicate()
        shutil.rmtree(database.parent)
        (folder / "mnist.intarsia").unlink()
    raise AssertionError("no race in five attempts")


def test_sigterm_during_tuning_leaves_nothing_but_the_measurements(tmp_path: Path) -> None:
    child = tuning(tmp_path)
    child.send_signal(signal.SIGTERM)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out, err) == (143, "", "stopped by SIGTERM\n")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    with Database.open(tmp_path / "kept" / "measurements.db", create=False) as database:
        assert database.statistics().records == 2


def test_ctrl_c_ends_with_the_best_so_far(tmp_path: Path) -> None:
    child = tuning(tmp_path)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "note: stopping after the current candidate; Ctrl-C again stops now\n" in err
    problem, advice = err.splitlines()[-2:]
    assert problem.startswith("error: stopped before the end; the best so far was saved")
    assert advice == "help: measurements are stored in the database: run the same command again to continue"
    (chosen,) = (line for line in out.splitlines() if line.endswith(" yes"))
    is_raced = " measured " not in chosen
    assert problem.endswith(", by single measurements: nothing was raced") != is_raced
    assert "wrote mnist.intarsia" in out
    assert process("run", "mnist.intarsia", cwd=tmp_path).code == 0


def test_ctrl_c_twice_stops_now(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys, time\n"
        "from intarsia.measure.testbed.local import LocalTestbed\n"
        "def wait(self, workload):\n"
        "    for _ in range(2):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "        time.sleep(0.5)\n"
        "    time.sleep(60)\n"
        "LocalTestbed.prepare = wait\n"
        "from intarsia.cli import main\n"
        f"sys.argv = {['intarsia', *TUNE, '60']}\n"
        "main()\n"
    )
    command = [PROGRAM[0], "-c", code]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment({}), capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 130
    assert done.stderr.endswith(
        "note: stopping after the current candidate; Ctrl-C again stops now\ninterrupted\n"
    )
    assert not list(tmp_path.iterdir())


def test_a_signal_while_saving_keeps_the_old_artifact(tmp_path: Path) -> None:
    (tmp_path / "mnist.intarsia").write_text("PK\x03\x04 old")
    stop = (
        "import os, signal, sys, zipfile\n"
        "from intarsia.cli import main\n"
        "close = zipfile.ZipFile.close\n"
        "def interrupted(self):\n"
        "    close(self)\n"
        "    if self.mode == 'w': os.kill(os.getpid(), signal.SIGINT)\n"
        "zipfile.ZipFile.close = interrupted\n"
        f"sys.argv = {['intarsia', *TUNE, '0.1', '-q']}\n"
        "main()\n"
    )
    done = subprocess.run(
        [PROGRAM[0], "-c", stop],
        cwd=tmp_path,
        env=environment({}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, "interrupted\n")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [
        ("mnist.intarsia", "PK\x03\x04 old")
    ]


def limit_file_size() -> None:
    """Files of this process may have 8 KB."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))


def test_a_file_that_may_not_grow(tmp_path: Path) -> None:
    outcome = process("zoo", "export", "mnist", cwd=tmp_path, before=limit_file_size)
    message = (
        "error: cannot write mnist.onnx: file too large\n"
        "help: the file would be larger than this disk or your limit allows: choose another disk\n"
    )
    assert outcome == Outcome(2, "", message)
    assert not list(tmp_path.iterdir())


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 KB."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(tmp_path)]
    done = subprocess.run(mount, capture_output=True, check=False)
    if done.returncode:
        pytest.skip("mounting a file system is not allowed here; the message is tested in test_cli_bad_input")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_full_disk(tiny_disk: Path) -> None:
    outcome = process("zoo", "export", "mnist", cwd=tiny_disk)
    assert outcome == Outcome(
        2,
        "",
        "error: cannot write mnist.onnx: no space left on device\n"
        "help: free some space or choose another disk, then run the same command again\n",
    )
    assert not list(tiny_disk.iterdir())


def test_nobody_reads_the_output(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*PROGRAM, "zoo", "list"],
        cwd=tmp_path,
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


def test_the_output_cannot_be_written(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*PROGRAM, "zoo", "list"],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.stderr == "error: cannot write the standard output: no space left on device\n"
    assert done.returncode == 2


@pytest.fixture
def without_engines(tmp_path: Path) -> dict[str, str]:
    """An environment in which onnxruntime is broken, openvino and llvmlite as good as not installed."""
    broken = tmp_path / "site" / "onnxruntime"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError('broken on purpose')\n")
    for package in ("llvmlite", "openvino"):
        empty = tmp_path / "site" / package
        empty.mkdir()
        (empty / "__init__.py").write_text(
            f"raise ModuleNotFoundError(\"No module named '{package}'\", name='{package}')\n"
        )
    return {"PYTHONPATH": str(tmp_path / "site")}


def test_doctor_without_engines(tmp_path: Path, without_engines: dict[str, str]) -> None:
    outcome = process("doctor", cwd=tmp_path, env=without_engines)
    assert (outcome.code, outcome.err) == (0, "")
    lines = [" ".join(line.split()) for line in outcome.out.splitlines()]
    assert (
        "onnxruntime not usable importing onnxruntime failed with ImportError: broken on purpose "
        "repair it: pip install 'intarsia[onnxruntime]' --force-reinstall"
    ) in lines
    assert "native not usable the package llvmlite is not installed pip install 'intarsia[native]'" in lines
    assert (
        "openvino not usable the package openvino is not installed pip install 'intarsia[openvino]'"
    ) in lines
    assert lines[-1] == (
        "no inference engine works here, only the slow reference: pip install 'intarsia[cpu]' installs three"
    )


def test_a_missing_toolchain(tmp_path: Path, without_engines: dict[str, str]) -> None:
    outcome = process("run", "zoo:mnist@openvino", cwd=tmp_path, env=without_engines)
    assert outcome == Outcome(
        2,
        "",
        "error: toolchain 'openvino' is not usable here: the package openvino is not installed\n"
        "help: pip install 'intarsia[openvino]'\n",
    )
