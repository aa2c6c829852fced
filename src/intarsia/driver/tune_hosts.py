"""`tune_hosts`: tune a model for every kind of machine of a cluster, in one run."""

from __future__ import annotations

import inspect
import os
import pickle
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from intarsia.driver.database_argument import opens_database
from intarsia.driver.import_model import given_name, import_model
from intarsia.driver.tune import tune
from intarsia.measure.database import Database
from intarsia.support.callbacks import never, silent
from intarsia.support.errors import IntarsiaError, UsageError
from intarsia.support.files import write_atomically
from intarsia.target import Host

if TYPE_CHECKING:
    import numpy.typing as npt

    from intarsia.measure.testbed.cluster_leads import LeadCallbacks

_NOT_SENT: Final = frozenset(
    {"model", "example_inputs", "dynamic_shapes", "shapes", "database", "cluster", "plan", "locked"}
    | {"on_progress", "on_note", "should_stop"}
)
"""Arguments of `tune` that a run for several machines has in another form, or not at all."""

_LINES: Final = "measurements.jsonl"


@dataclass(frozen=True, slots=True, eq=False)
class HostAnswer:
    """What a run has found for one kind of machine.

    Attributes:
        host: The machine.
        threads: Number of threads of its workers, as the run began.
        result: Result of `tune` there as plain data (`TuneResult.to_json`); empty after an error.
        artifact: Winner, as the bytes of an artifact; empty after an error.
        error: Error that ended the run there, or None.
    """

    host: Host
    threads: int
    result: Mapping[str, Any]
    artifact: bytes
    error: IntarsiaError | None = None

    @property
    def name(self) -> str:
        """Short name of the machine: the start of its fingerprint."""
        return self.host.digest[:8]

    @property
    def chosen(self) -> Mapping[str, Any]:
        """Record of the winner; empty after an error."""
        records = self.result.get("candidates", ())
        return next((record for record in records if record["chosen"]), {})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the artifact.

        Raises:
            IntarsiaError: The run has ended with an error there.
            OutputError: It cannot be written.
        """
        if self.error is not None:
            raise self.error
        with write_atomically(Path(path)) as temporary:
            temporary.write_bytes(self.artifact)


@opens_database
def tune_hosts(
    model: Any,
    example_inputs: Any = None,
    *,
    cluster: str,
    dynamic_shapes: Any = None,
    shapes: Mapping[str, Sequence[int | str]] | None = None,
    inputs: Mapping[str, npt.NDArray[Any]] | None = None,
    name: str = "",
    database: Database | str | os.PathLike[str] | Literal[False] | None = None,
    on_note: Callable[[Host, str], object] | None = None,
    should_stop: Callable[[], bool] | None = None,
    patience: float = 120.0,
    **options: Any,
) -> tuple[HostAnswer, ...]:
    """Find the fastest correct executable of a model for every kind of machine of a cluster.

    One worker of each kind leads: it decides as `tune` does on its machine, and all workers of its kind
    measure. Measurements of different machines never meet. Machines are of one kind if their fingerprints
    are equal. A database on a server is used by all leads at once, and a run that was interrupted goes on
    from it; of a file each lead gets the measurements of its machine, and the new ones come back at its end.

    Args:
        model: Model, as for `tune`.
        example_inputs: Inputs of a model of PyTorch.
        cluster: Address of a Dask scheduler, such as "tcp://10.0.0.1:8786".
        dynamic_shapes: Dynamic dimensions of a model of PyTorch.
        shapes: Shapes of inputs, by name.
        inputs: Input arrays for verification and measurements, by name.
        name: Name of the model in tables and reports.
        database: Database of measurements, or its file or URL; None or False for none.
        on_note: Function that is called with a machine and a line for users.
        should_stop: Function that is called repeatedly; true ends all runs with the measurements so far.
        patience: Seconds to wait for a worker when all of a kind are gone.
        options: Options of `tune`, such as `budget`, which every kind of machine has for itself.

    Returns:
        An answer for each kind of machine, those with the most threads first. A run that ends with an error
        on one kind does not end the others.

    Raises:
        UsageError: There is no such option, or it cannot be sent; no scheduler answers, or it has no workers
            with this version of Intarsia.
        ExecutionError: The scheduler is lost.
        ModelError: The model is invalid or unsupported.
        DatabaseError: Measurements cannot be read or stored.
    """
    from intarsia.measure.testbed.cluster_leads import ClusterLeads

    _check_options(options)
    shared = cast("Database | None", database)  # `opens_database` has opened it
    imported = import_model(model, shapes, inputs, example_inputs, dynamic_shapes)
    title = name or given_name(model)
    job = _SentJob.of(imported.module, cluster, {**options, "inputs": dict(imported.inputs), "name": title})
    leads: ClusterLeads[_SentAnswer] = ClusterLeads(
        cluster, on_note or silent, should_stop or never, patience_s=patience
    )
    answers = []
    for host, threads, outcome in leads.run(_tune_there, partial(_arguments, job, shared)):
        if isinstance(outcome, IntarsiaError):
            answers.append(HostAnswer(host, threads, {}, b"", outcome))
            continue
        if shared is not None and outcome.lines:
            with _line_file(outcome.lines) as path:
                shared.import_lines(path)
        answers.append(HostAnswer(host, threads, outcome.result, outcome.artifact))
    return tuple(sorted(answers, key=lambda answer: (-answer.threads, answer.name)))


def _check_options(options: Mapping[str, Any]) -> None:
    accepted = inspect.signature(tune).parameters.keys() - _NOT_SENT
    if unknown := sorted(options.keys() - accepted):
        raise UsageError(
            f"tune_hosts has no option {unknown[0]}", help=f"options are {', '.join(sorted(accepted))}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class _SentJob:
    """A tuning job without a database.

    Attributes:
        program: Text of the program.
        constants: Constants of the program.
        settings: Text of the settings of the pass context.
        cluster: Address of the scheduler.
        options: Options of `tune`.
    """

    program: str
    constants: tuple[Any, ...]
    settings: str
    cluster: str
    options: Mapping[str, Any]

    @classmethod
    def of(cls, module: Any, cluster: str, options: Mapping[str, Any]) -> _SentJob:
        """Return the job of a program.

        Raises:
            UsageError: An option cannot be sent to another process.
        """
        from intarsia.ir.printer import print_module
        from intarsia.transform import PassSettings

        for name, value in options.items():
            try:
                pickle.dumps(value)
            except Exception as error:  # whatever an object raises
                raise UsageError(f"{name} cannot be sent to other machines: {error}") from error
        text = print_module(module)
        return cls(text.text, tuple(text.constants), PassSettings.current().text, cluster, options)


@dataclass(frozen=True, slots=True, eq=False)
class _SentAnswer:
    """The result of a lead: plain data, the artifact, and the new measurements of a file."""

    result: Mapping[str, Any]
    artifact: bytes
    lines: bytes


def _arguments(job: _SentJob, database: Database | None, host: Host) -> tuple[_SentJob, str | None, bytes]:
    """Return the arguments of a lead: the job, the URL of a database, or the measurements of a file."""
    if database is None:
        return job, None, b""
    if (url := database.server_url) is not None:
        return job, url, b""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / _LINES
        database.export_lines(path, host.digest)
        return job, None, path.read_bytes()


def _tune_there(callbacks: LeadCallbacks, job: _SentJob, url: str | None, lines: bytes) -> _SentAnswer:
    """Tune in a worker of the cluster, for the workers on machines such as its own."""
    from intarsia.ir.parser import parse_module
    from intarsia.transform import PassSettings

    module = parse_module(job.program, job.constants)
    with (
        PassSettings(job.settings).context(),
        tempfile.TemporaryDirectory() as folder,
        closing(Database.open(url or Path(folder) / "measurements.db")) as database,
    ):
        if lines:
            with _line_file(lines) as path:
                database.import_lines(path)
        result = tune(
            module,
            database=database,
            cluster=job.cluster,
            on_note=callbacks.on_note,
            should_stop=callbacks.should_stop,
            **job.options,
        )
        artifact, exported = Path(folder) / "winner.intarsia", Path(folder) / _LINES
        with closing(result.executable):
            result.save(artifact)
        if url is None:
            database.export_lines(exported, result.host.digest)
        new_lines = exported.read_bytes() if url is None else b""
        return _SentAnswer(result.to_json(), artifact.read_bytes(), new_lines)


@contextmanager
def _line_file(lines: bytes) -> Iterator[Path]:
    """Write lines to a file that lasts as long as the block."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / _LINES
        path.write_bytes(lines)
        yield path
