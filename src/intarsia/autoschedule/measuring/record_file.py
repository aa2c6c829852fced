"""Read and write files of records: the v0.6 log, one record a line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from intarsia.native.loop_state.record import Record, read_records, record_from_line, record_to_text
from intarsia.support.errors import DatabaseError
from intarsia.support.files import output_error


@dataclass(frozen=True, slots=True)
class LoadedRecords:
    """The records of a file.

    Attributes:
        records: Records in the order of the file.
        torn: Beginning of a last record whose writer was killed; "" if the file is whole.
    """

    records: tuple[Record, ...]
    torn: str = ""


def read_record_file(path: Path) -> LoadedRecords:
    """Read the records of a file; a last line without a line break that is no record is torn.

    Raises:
        DatabaseError: The file cannot be read, or another line is damaged; the message names it.
    """
    text = _text(path)
    whole, torn = text, ""
    last = text.rpartition("\n")[2]
    if last.strip() and not _is_record(last):
        whole, torn = text[: len(text) - len(last)], last
    return LoadedRecords(tuple(read_records(whole.splitlines(), str(path))), torn)


def load_records(path: str | Path) -> tuple[Record, ...]:
    """Read the records of a file, written by Intarsia or TVM; a torn last record is left out.

    Raises:
        DatabaseError: As `read_record_file`.
    """
    return read_record_file(Path(path)).records


def save_records(path: str | Path, records: Iterable[Record]) -> None:
    """Append records to a file, each flushed; a torn last line is removed first.

    Raises:
        OutputError: The file system refused.
    """
    file_path = Path(path)
    try:
        mend(file_path)
        with file_path.open("a") as file:
            for record in records:
                file.write(record_to_text(record))
                file.flush()
    except OSError as error:
        raise output_error(file_path, error) from error


def mend(path: Path) -> str:
    """Make a file end with a whole line, so that a record can follow.

    A last line without a line break gets one if it is a record, and is removed if it is torn.

    Returns:
        The line that was removed; "" if there was none.

    Raises:
        OSError: The file system refused.
    """
    if not path.exists() or path.stat().st_size == 0:
        return ""
    with path.open("r+b") as file:
        content = file.read()
        last = content.rpartition(b"\n")[2]
        if not last:
            return ""
        text = last.decode(errors="replace")
        if _is_record(text) or not text.lstrip().startswith("{"):
            file.write(b"\n")
            return ""
        file.truncate(len(content) - len(last))
        return text


def _is_record(line: str) -> bool:
    try:
        record_from_line(line)
    except DatabaseError:
        return False
    return True


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DatabaseError(f"cannot read {path}: {reason}") from error
