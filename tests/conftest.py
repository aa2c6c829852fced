"""Options of the whole suite."""

import gc
import os
import signal
import tempfile
from collections.abc import Generator, Iterator

import pluggy
import pytest
from tests.effort import EFFORTS, choose_effort
from tests.emitted_kernels import x86_sets
from tests.emulated_cpus import CPUS, emulate, skip_what_cannot_run
from tests.fake_kernels import FakeToolchain
from tests.kept_fork_servers import KeptForkServers
from tests.numpy_toolchain import NumpyToolchain
from tests.quick_cases import mark_other_cases

from intarsia.measure.testbed.local import LocalTestbed
from intarsia.measure.worker_pool.fork_server_process import ForkServerProcess
from intarsia.runtime.kernel import TOOLCHAINS
from intarsia.support.environment import COMPILE_PROCESSES, PROGRAM_CACHE


def pytest_configure(config: pytest.Config) -> None:
    """Hear the signals that a shell has told background jobs, and nohup its command, to ignore.

    Commands that name no database get one of this process, and not the user's own. The cache of compiled
    kernels belongs to the whole run: processes of pytest-xdist share that of the process that started them.
    """
    gc.disable()  # until all tests are collected, see pytest_collection_finish
    choose_effort(config.getoption("--effort"), is_random=config.getoption("--hypothesis-seed") is not None)
    if config.getoption("--isa"):
        emulate(config.getoption("--isa"))
    os.environ["XDG_DATA_HOME"] = _temporary_folder(config, "data")
    if not hasattr(config, "workerinput"):
        os.environ["XDG_CACHE_HOME"] = _temporary_folder(config, "cache")
    os.environ.pop("INTARSIA_DATABASE", None)
    os.environ[COMPILE_PROCESSES] = "0"  # tests replace functions, which other processes do not know
    os.environ[PROGRAM_CACHE] = "0"  # and keys of programs either
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


def _temporary_folder(config: pytest.Config, purpose: str) -> str:
    folder = tempfile.TemporaryDirectory(prefix=f"intarsia-tests-{purpose}-")
    config.add_cleanup(folder.cleanup)
    return folder.name


@pytest.hookimpl(tryfirst=True)  # before pytest deselects by markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave tests that name another instruction set, and those beyond `quick_cases`, to `make slow`.

    No other run has the code of the CPU of `--isa`: with it, tests beyond `quick_tests` stay.
    """
    _mark_other_instruction_sets(items)
    mark_other_cases(items, is_whole_file=config.getoption("--isa") is not None)


def _mark_other_instruction_sets(items: list[pytest.Item]) -> None:
    narrower = {name: isa for name, isa in x86_sets().items() if name != "host"}
    for item in items:
        params = getattr(getattr(item, "callspec", None), "params", {})
        if params.get("isa_name") in narrower or params.get("isa") in narrower.values():
            item.add_marker("slow")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Exempt what was imported and collected from garbage collection.

    These are some million objects that live until the end. A collection during a test would visit each of
    them: more work than most tests themselves.
    """
    gc.freeze()
    gc.enable()


@pytest.fixture(params=[1_200, pytest.param(20_000, marks=pytest.mark.slow)])
def length(request: pytest.FixtureRequest) -> int:
    """Return how deep programs are that must be traversed without recursion: deeper than Python's limit."""
    length: int = request.param
    return length


@pytest.fixture(scope="session")
def shared_testbed() -> Iterator[LocalTestbed]:
    """One testbed for all tests that leave its workers as they are: starting three takes seconds."""
    from tests.collage_testbeds import collage_testbed

    modules = ("tests.unit.measure.hazards", "tests.unit.measure.odd_candidates")
    with collage_testbed(preload=modules) as opened:
        yield opened


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
    parser.addoption(
        "--effort",
        choices=EFFORTS,
        default="quick",
        help="how many examples hypothesis tries: a few, a part of what a test states, or all",
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


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call() -> None:
    """Hide pytest's variable of the current test: pools share a fork server only in one environment."""
    os.environ.pop("PYTEST_CURRENT_TEST", None)


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup() -> None:
    """Hide it from fixtures as well."""
    os.environ.pop("PYTEST_CURRENT_TEST", None)


@pytest.fixture(scope="session")
def kept_fork_servers() -> Iterator[KeptForkServers]:
    """The fork servers of this run, which stay until its end."""
    with KeptForkServers() as kept:
        yield kept


@pytest.fixture
def one_fork_server(kept_fork_servers: KeptForkServers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fork the workers of all such tests from one server for each set of modules.

    A server takes seconds to import them, and otherwise ends with the last pool of a test.
    """
    monkeypatch.setattr(ForkServerProcess, "shared", kept_fork_servers.shared)
