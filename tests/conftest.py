"""Options of the whole suite."""

import os
import signal
import tempfile
from collections.abc import Generator, Iterator

import pluggy
import pytest
from hypothesis import settings
from tests.emulated_cpus import CPUS, emulate, skip_what_cannot_run
from tests.fake_kernels import FakeToolchain
from tests.numpy_toolchain import NumpyToolchain

from intarsia.runtime.kernel import TOOLCHAINS

# No test asserts wall-clock time: a busy machine must not fail one.
settings.register_profile("intarsia", deadline=None)
settings.load_profile("intarsia")


def pytest_configure(config: pytest.Config) -> None:
    """Hear the signals that a shell has told background jobs, and nohup its command, to ignore.

    Commands that name no database get one of this run, and not the user's own; the same holds for the
    cache of compiled kernels.
    """
    if config.getoption("--isa"):
        emulate(config.getoption("--isa"))
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
    parser.addoption("--isa", choices=sorted(CPUS), help="generate native code as if on this CPU")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pluggy.Result[pytest.TestReport], None]:
    """Skip tests of `--isa` whose code this machine cannot run."""
    outcome = yield
    if item.config.getoption("--isa"):
        skip_what_cannot_run(outcome.get_result(), call)
