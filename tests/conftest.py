"""Options of the whole suite."""

import os
import signal
import tempfile
from collections.abc import Iterator

import pytest
from tests.fake_kernels import FakeToolchain
from tests.numpy_toolchain import NumpyToolchain

from intarsia.runtime.kernel import TOOLCHAINS


def pytest_configure(config: pytest.Config) -> None:
    """Hear the signals that a shell has told background jobs, and nohup its command, to ignore.

    Commands that name no database get one of this run, and not the user's own; the same holds for the
    cache of compiled kernels.
    """
    data = tempfile.TemporaryDirectory(prefix="intarsia-tests-")
    config.add_cleanup(data.cleanup)
    os.environ["XDG_DATA_HOME"] = os.environ["XDG_CACHE_HOME"] = data.name
    os.environ.pop("INTARSIA_DATABASE", None)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="module")
def fake_toolchain() -> Iterator[type[FakeToolchain]]:
    """The toolchain "fake" is registered while the tests of the module run."""
    with TOOLCHAINS.holding("fake", FakeToolchain) as toolchain:
        yield toolchain  # type: ignore[misc]  # the registry knows it as a KernelLoader


@pytest.fixture(scope="module")
def numpy_toolchain() -> Iterator[type[NumpyToolchain]]:
    """The toolchain "numpy" is registered while the tests of the module run."""
    with TOOLCHAINS.holding("numpy", NumpyToolchain) as toolchain:
        yield toolchain  # type: ignore[misc]  # the registry knows it as a KernelLoader


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite the files in tests/golden to what is produced now",
    )
