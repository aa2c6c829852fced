"""The machine and the versions of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from intarsia.report.report_source import ReportSource
from intarsia.support.units import cache_text

_CACHES = {"l1d_bytes": "L1 data cache", "l2_bytes": "L2 cache", "l3_bytes": "L3 cache"}
_TEXTS = {
    "architecture": "Architecture",
    "system": "Operating system",
    "python": "Python",
    "thread_policy": "Threads",
    "machine": "Machine model",
}


def machine_facts(source: ReportSource) -> tuple[tuple[str, str], ...]:
    """Return names and values of the facts that are recorded."""
    return tuple((name, value) for name, value in _facts(source) if value)


def _facts(source: ReportSource) -> Iterator[tuple[str, str]]:
    run, host = source.explanation, source.host
    yield "CPU", f"{run.cpu}, {run.cores} usable cores"
    for key, label in _CACHES.items():
        size = host.get(key)
        if isinstance(size, int) and size:
            yield label, cache_text(size)
    instruction_sets = host.get("isa")
    if isinstance(instruction_sets, list | tuple):
        yield "Instruction sets", ", ".join(map(str, instruction_sets))
    for key, label in _TEXTS.items():
        yield label, str(host.get(key, ""))
    versions = host.get("toolchains")
    if isinstance(versions, Mapping):
        yield "Toolchains", ", ".join(f"{name} {version}" for name, version in versions.items())
    if run.request is not None:
        yield "Intarsia", run.request.version
    if source.finished_at is not None:
        yield "Finished", f"{datetime.fromtimestamp(source.finished_at, UTC):%Y-%m-%d %H:%M} UTC"
