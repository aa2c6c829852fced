import os
import signal
import threading

import pytest

from intarsia.cli.console.interruption import Interrupted, interruptible


@pytest.mark.parametrize(
    ("number", "word", "code"),
    [
        (signal.SIGINT, "interrupted", 130),
        (signal.SIGTERM, "stopped by SIGTERM", 143),
        (signal.SIGHUP, "stopped by SIGHUP", 129),
    ],
)
def test_signals_become_exceptions(number: int, word: str, code: int) -> None:
    before = signal.getsignal(number)
    with pytest.raises(Interrupted) as caught, interruptible():
        os.kill(os.getpid(), number)
    assert (caught.value.word, caught.value.exit_code) == (word, code)
    assert signal.getsignal(number) is before


def test_the_second_of_two_quick_signals_is_ignored() -> None:
    steps: list[str] = []

    def work() -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            steps.append("went on")
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            steps.append("cleaned up")

    with pytest.raises(Interrupted), interruptible():
        work()
    assert steps == ["cleaned up"]


def test_ignored_signals_stay_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruptible():
            os.kill(os.getpid(), signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_other_threads_take_no_signals() -> None:
    seen: list[object] = []

    def work() -> None:
        with interruptible():
            seen.append(signal.getsignal(signal.SIGTERM))

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]
