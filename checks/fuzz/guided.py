"""Coverage-guided fuzzing by atheris: inputs that reach new code are kept and changed further."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from checks.fuzz.kinds import Kind

_SOURCE: Final = Path(__file__).parents[2] / "src"


def instrumented() -> AbstractContextManager[None]:
    """Return a context in which imported modules of the readers count their branches."""
    import atheris

    sys.path.insert(0, str(_SOURCE))  # atheris does not watch what an editable install finds
    context: AbstractContextManager[None] = atheris.instrument_imports(include=["intarsia"])
    return context


def run_guided(kind: Kind, folder: Path, seconds: int, seed: int) -> NoReturn:
    """Fuzz one kind; the process ends with it, and prints an input that is a finding as its path.

    Args:
        kind: Seeds and reader.
        folder: Folder for the corpus of the run.
        seconds: Time in seconds.
        seed: Random seed, 1 or more; 0 for another one each time.
    """
    import atheris

    from intarsia.support.errors import IntarsiaError

    seeds = folder / "seeds"
    seeds.mkdir()
    for number, data in enumerate(kind.seeds):
        (seeds / str(number)).write_bytes(data)

    def read(data: bytes) -> None:
        try:
            kind.read(data)
        except IntarsiaError:
            return

    limits = [f"-max_total_time={seconds}", f"-seed={seed}", "-timeout=10", "-rss_limit_mb=4096"]
    given: list[Any] = [sys.argv[0], *limits, "-max_len=65536", str(seeds)]
    atheris.Setup(given, read)
    atheris.Fuzz()
    raise SystemExit(0)
