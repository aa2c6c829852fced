"""Program text after each pass, in files."""

from __future__ import annotations

import re
from pathlib import Path

from intarsia.ir import IRModule
from intarsia.support.files import output_error, write_text
from intarsia.transform.instrument.pass_instrument import PassInstrument
from intarsia.transform.pass_info import PassInfo


class DumpIR(PassInstrument):
    """Writes the program after each pass to `NNN_<pass>.txt` in a folder, numbered from 000.

    The text is complete but for the values of constants. A pass that changed
    nothing gets a number, but no file.

    Args:
        folder: Folder to write to; created if missing.
        refresh: Whether to remove, on entering the context, such files of earlier runs.

    Raises:
        OutputError: The folder cannot be made or written to.
    """

    def __init__(self, folder: str | Path, refresh: bool = False) -> None:
        self._folder = Path(folder)
        self._refresh = refresh
        self._count = 0
        self._last: IRModule | None = None

    def enter_pass_ctx(self) -> None:
        """Create the folder, and empty it if `clear` is set."""
        self._count = 0
        self._last = None
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            if self._refresh:
                for path in self._folder.iterdir():
                    if re.fullmatch(r"\d{3,}_.*\.txt", path.name):
                        path.unlink()
        except OSError as error:
            raise output_error(self._folder, error) from error

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Write one file."""
        if mod is not self._last:
            name = re.sub(r"[^\w.-]", "_", info.name)
            write_text(self._folder / f"{self._count:03}_{name}.txt", f"{mod}\n")
        self._count += 1
        self._last = mod
