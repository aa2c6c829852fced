"""The fault table of tuning at scale: each fault is played, and what was lost is counted.

A tuner measures 16 candidates of a small program on two real Dask workers of this machine, one at a time
(the lock of the host). The fault comes after the fourth result. A row has the results that the tuner had
before the fault, those of them that the database lacks afterwards ("lost"), and the candidates that were
measured again, because they were in flight. Where a fault ends the run, the cause is mended and the same
command is given again: it finds what is stored, and measures the rest. "Seconds" are those without a result
around the fault.

    python -m benchmarks.cluster_faults [FAULT ...]

It takes about 5 minutes, most of it waits for limits of Dask. "database gone" needs an installed PostgreSQL;
the disk is full by a limit on the pages of an SQLite file.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from sqlalchemy import event
from tests.postgresql_server import programs, running_server
from tests.tcp_proxy import TcpProxy, tcp_proxy
from tests.unit.measure.testbed import recorded_runs
from tests.unit.measure.testbed.candidates import LIMITS, PRELOAD, WORKLOAD, candidate
from tests.unit.measure.testbed.dask_processes import Processes, dask_processes

from intarsia.measure.database import Database
from intarsia.measure.measure_input import MeasureInput
from intarsia.measure.measure_progress import MeasureProgress
from intarsia.measure.measurer import Measurer
from intarsia.measure.testbed.dask_cluster import connect
from intarsia.support.errors import IntarsiaError
from intarsia.toolchain.this_host import this_host

CANDIDATES, BEFORE = 16, 4
CUT_S = 4.0
HANG_S = 10
"""Seconds after which the scheduler gives up a silent worker; Dask's own limit is 5 minutes."""
OUTAGE_S = 120.0


@dataclass(eq=False)
class Scene:
    """What a fault can harm."""

    cluster: Processes
    network: TcpProxy
    database: Database
    server: TcpProxy | None
    pages: list[int] = field(default_factory=list)

    def hang_worker(self) -> None:
        """Stop the process of a worker, which keeps its connections."""
        os.kill(self.cluster.worker_pids()[0], signal.SIGSTOP)

    def kill_worker(self) -> None:
        """Kill a worker."""
        os.kill(self.cluster.worker_pids()[0], signal.SIGKILL)

    def kill_all_workers(self) -> None:
        """Kill both workers, and start another one."""
        for pid in self.cluster.worker_pids():
            os.kill(pid, signal.SIGKILL)
        self.start_worker()

    def restart_scheduler(self) -> None:
        """Kill the scheduler, with which workers end, and start both again."""
        self.cluster.kill_scheduler()
        self.cluster.restart_scheduler()
        self.start_worker()

    def cut_network(self) -> None:
        """Cut the tuner off from the scheduler for a while."""
        self.network.cut()
        time.sleep(CUT_S)
        self.network.restore()

    def lose_database(self) -> None:
        """Cut the tuner off from the server of the database until it is mended."""
        assert self.server is not None
        self.server.cut()

    def fill_disk(self) -> None:
        """Let the database not grow until it is mended."""
        self.pages.append(1)

    def mend(self) -> None:
        """End a lasting fault."""
        self.pages.clear()
        if self.server is not None:
            self.server.restore()

    def start_worker(self) -> None:
        """Start a worker that notes what it measures."""
        self.cluster.start_worker(environment={recorded_runs.RECORD: str(self.cluster.folder / "record")})


FAULTS: dict[str, Callable[[Scene], None]] = {
    "worker killed": Scene.kill_worker,
    "worker hangs": Scene.hang_worker,
    "all workers killed, one started": Scene.kill_all_workers,
    "scheduler restarted, one worker": Scene.restart_scheduler,
    "network cut for 4 s": Scene.cut_network,
    "database gone": Scene.lose_database,
    "disk full": Scene.fill_disk,
}


@contextmanager
def opened_database(folder: Path, is_on_server: bool) -> Iterator[tuple[Database, TcpProxy | None]]:
    """A database, with the proxy to its server."""
    with ExitStack() as closing:
        if not is_on_server:
            yield closing.enter_context(Database.open(folder / "measurements.db")), None
            return
        installed = programs()
        assert installed is not None, "PostgreSQL is not installed"
        server = closing.enter_context(running_server(installed))
        proxy = closing.enter_context(tcp_proxy(server.port))
        port = int(proxy.address.rsplit(":", 1)[1])
        url = server.url("postgres").replace(f":{server.port}/", f":{port}/")
        yield closing.enter_context(Database.open(url)), proxy


@contextmanager
def opened_scene(folder: Path, is_on_server: bool) -> Iterator[Scene]:
    """Two workers, a network to the scheduler, and a database."""
    limits = {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": f"{HANG_S}s"}
    with (
        dask_processes(folder, limits) as cluster,
        tcp_proxy(int(cluster.address.rsplit(":", 1)[1])) as network,
        opened_database(folder, is_on_server) as (database, server),
    ):
        scene = Scene(cluster, network, database, server)
        if server is None:
            limit_pages(database, scene.pages)
        for _ in range(2):
            scene.start_worker()
        cluster.expect_workers(2)
        yield scene


def limit_pages(database: Database, pages: list[int]) -> None:
    """Have the disk be full while the list has an element: a database does not shrink below its pages."""
    engine = database._connections._engine

    @event.listens_for(engine, "checkout")
    def set_limit(connection: object, _record: object, _proxy: object) -> None:
        most = pages[0] if pages else 1 << 30
        connection.execute(f"PRAGMA max_page_count={most}")  # type: ignore[attr-defined]


def tune(scene: Scene, inputs: list[MeasureInput], on_progress: Callable[[MeasureProgress], None]) -> str:
    """Measure all, as a run does, and return the error that ended it, or the empty string."""
    modules = (*PRELOAD, recorded_runs.__name__)
    try:
        with connect(
            scene.network.address,
            this_host(),
            limits=LIMITS,
            preload=modules,
            timeout_s=20,
            patience_s=OUTAGE_S,
        ) as testbed:
            Measurer(testbed, scene.database, on_progress=on_progress).measure(inputs)
    except IntarsiaError as error:
        return str(error).splitlines()[0]
    return ""


def play(name: str, fault: Callable[[Scene], None]) -> str:
    """Return the row of a fault."""
    inputs = [candidate(trace=number) for number in range(CANDIDATES)]
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        opened_scene(Path(folder), name == "database gone") as scene,
    ):
        before: list[int] = []
        moments: list[float] = []

        def note(progress: MeasureProgress) -> None:
            moments.append(time.monotonic())
            if progress.done >= BEFORE and not before:
                before.append(progress.done)
                fault(scene)

        error = tune(scene, inputs, note)
        assert before, f"{name}: the run ended before the fault: {error or 'without an error'}"
        pause = max(later - earlier for earlier, later in pairwise(moments))
        scene.mend()
        stored = stored_texts(scene)
        lost = max(0, before[0] - len(stored))
        end = f'ends: "{error}"' if error else "goes on"
        if error:
            again = tune(scene, inputs, lambda _: None)
            end += f"; again: {again or f'finds {len(stored)}, measures {CANDIDATES - len(stored)}'}"
        whole = len(stored_texts(scene))
        assert whole == CANDIDATES, f"{name}: only {whole} of {CANDIDATES} in the end"
        runs = len(
            [span for span in recorded_runs.spans(scene.cluster.folder / "record") if span.what == "run"]
        )
        repeated = max(0, runs - CANDIDATES)
        return f"| {name} | {before[0]} | {lost} | {repeated} | {pause:.0f} | {end} |"


def stored_texts(scene: Scene) -> set[str]:
    """The stored candidates; each was measured once."""
    records = scene.database.records_of(WORKLOAD.digest)
    assert all(len(record.measurements) == 1 for record in records)
    return {record.trace for record in records}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("faults", nargs="*", metavar="FAULT", help=", ".join(FAULTS))
    options = parser.parse_args()
    print("| fault | results before | lost | measured again | seconds | the run |")
    print("|---|---|---|---|---|---|")
    for name in options.faults or FAULTS:
        print(play(name, FAULTS[name]), flush=True)


if __name__ == "__main__":
    main()
