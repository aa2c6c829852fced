"""Tasks that do harm, for the tests of the worker pool."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from intarsia.support.spoilt_process import spoil_process

MEBIBYTE = 1 << 20


def good(number: int) -> int:
    return number * number


def process_and_group() -> tuple[int, int]:
    return os.getpid(), os.getpgrp()


def spoil_and_return() -> tuple[int, int]:
    spoil_process()
    return process_and_group()


def spoil_and_raise() -> None:
    spoil_process()
    raise_error()


def raise_error() -> None:
    raise ValueError("no such layout")


class Unspeakable(Exception):  # noqa: N818 -- a bad name for a bad class
    """Cannot be pickled, formatted or rebuilt."""

    def __init__(self) -> None:
        super().__init__(lambda: None)

    def __str__(self) -> str:
        raise RuntimeError("no words")


def raise_unspeakable() -> None:
    raise Unspeakable


def return_function() -> object:
    return lambda: None


def break_when_rebuilt() -> None:
    raise ValueError("cannot be rebuilt")


class Unreadable:
    def __reduce__(self) -> tuple[object, ...]:
        return break_when_rebuilt, ()


def return_unreadable() -> Unreadable:
    return Unreadable()


def segfault() -> None:
    ctypes.string_at(0)


def abort() -> None:
    os.abort()


def exit_softly() -> None:
    sys.exit(3)


def exit_hard() -> None:
    os._exit(4)


def loop() -> None:
    while True:
        pass


def loop_whatever_comes() -> None:
    """SIGTERM, as an exception or as a signal, is ignored."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    loop()


def clean_up_when_told(path: Path) -> None:
    try:
        loop()
    finally:
        path.write_text("clean")


def stop_itself() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def allocate(size: int) -> int:
    return len(bytearray(size))


def allocate_at_once() -> int:
    return allocate(10 << 30)


def allocate_bit_by_bit() -> None:
    """Shared memory, which counts against no limit of the system on a process."""
    import mmap

    held = []
    while True:
        held.append(mmap.mmap(-1, 16 * MEBIBYTE))
        for page in range(0, 16 * MEBIBYTE, mmap.PAGESIZE):
            held[-1][page] = 1


def allocate_in_a_child() -> None:
    code = "import mmap, time\nheld = [b'1' * (1 << 20) for _ in range(400)]\ntime.sleep(60)"
    subprocess.run([sys.executable, "-c", code], check=True)


def close_files() -> None:
    os.closerange(0, 4096)


def close_files_and_loop() -> None:
    os.closerange(0, 4096)
    loop()


def close_output() -> int:
    os.close(1)
    os.close(2)
    return 5


def write_everywhere() -> None:
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, b"\xff" * 64)
        except OSError:
            continue
    loop()


def kill_own_group() -> None:
    os.killpg(0, signal.SIGKILL)


def kill_parent() -> None:
    os.kill(os.getppid(), signal.SIGKILL)
    loop()


def flood() -> None:
    line = b"flood " * 1000
    for _ in range(1000):
        os.write(1, line)
        os.write(2, line)
    os.write(2, b"the end")
    raise ValueError("flooded")


def print_and_crash() -> None:
    sys.stdout.write("last words\n")
    os.abort()


def leave_processes(path: Path) -> None:
    """A child, and a daemon in a session of its own whose parent has ended."""
    child = subprocess.Popen(["sleep", "600"])
    daemon = subprocess.run(
        ["sh", "-c", "setsid sleep 600 >&- & echo $!"], stdout=subprocess.PIPE, check=True, text=True
    )
    path.write_text(f"{child.pid} {daemon.stdout}")


def leave_processes_and_loop(path: Path) -> None:
    leave_processes(path)
    loop()


def leave_processes_and_crash(path: Path) -> None:
    leave_processes(path)
    os.abort()


def come_back_twice() -> int:
    return os.fork() and 7


def is_loaded(module: str) -> bool:
    return module in sys.modules


def temporary_folder() -> str:
    Path(tempfile.mkdtemp(), "file").write_text("left behind")
    return tempfile.gettempdir()


def interrupt() -> None:
    raise KeyboardInterrupt


def wait_for(path: Path) -> str:
    while not path.exists():
        time.sleep(0.01)
    return "seen"


def say_and_wait(path: Path) -> None:
    path.write_text(str(os.getpid()))
    time.sleep(600)
