"""What a worker compiled, in a folder from which the process that runs it reads."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Final, Self

from intarsia.support.files import write_atomically

_FILE: Final = "kernel.pickle"


class SavedKernel:
    """A compiled kernel that can be written into a folder."""

    __slots__ = ()

    def save(self, folder: Path) -> None:
        """Write the kernel into a new folder.

        Raises:
            OutputError: It cannot be written.
        """
        with write_atomically(folder) as temporary:
            temporary.mkdir()
            (temporary / _FILE).write_bytes(pickle.dumps(self, protocol=5))

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the kernel that a worker has written into a folder."""
        kernel: Self = pickle.loads((folder / _FILE).read_bytes())  # noqa: S301 -- written by a worker of this run
        return kernel
