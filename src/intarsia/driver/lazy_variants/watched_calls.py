"""Run an artifact, and make variants of it for the sizes that calls have often."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Any, Final

from intarsia.driver.lazy_variants.sized_executables import SizedExecutables, Sizes
from intarsia.runtime.artifact_load import load
from intarsia.runtime.entry_points import find_dim
from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import Array, Value
from intarsia.support.callbacks import silent
from intarsia.support.closed_on_exit import ClosedOnExit
from intarsia.support.environment import copy_environment
from intarsia.support.errors import IntarsiaError, UsageError
from intarsia.target import Target

_MOST_COUNTED: Final = 4096
"""Sizes whose calls are counted; with more, counting begins anew, so that memory stays flat."""


def specialize_lazily(
    artifact: str | os.PathLike[str],
    targets: Sequence[Target | str] = ("cpu -toolchain=native",),
    *,
    calls: int = 16,
    most: int = 4,
    on_note: Callable[[str], object] = silent,
) -> LazyVariants:
    """Load an artifact with symbolic dimensions, and specialize it for the sizes that calls have often.

    The artifact's program takes every size at once. When a size has come often, a process of low priority
    builds the program for it, compares its results with those of the artifact and times both. If it is
    right and faster, later calls of this size run it.

    Args:
        artifact: Path of the artifact; it must stay where it is.
        targets: Targets that may compile variants; the fastest one at a size does.
        calls: Number of calls with a size after which it gets a variant, 1 or more.
        most: Maximum number of variants at a time, 1 or more; each has weights of its own. The one that was
            not used for longest leaves for a new one.
        on_note: Called with sentences about variants, from another thread.

    Raises:
        ArtifactError: It cannot be loaded.
        MissingToolchainError: A toolchain that it needs is not usable here.
        UsageError: It has no symbolic dimension, or `calls` or `most` is not positive.
    """
    if calls < 1 or most < 1:
        raise UsageError(f"calls is {calls} and most is {most}, expected 1 or more")
    chosen = [item if isinstance(item, Target) else Target.parse(item) for item in targets]
    if unnamed := next((item for item in chosen if item.toolchain is None), None):
        raise UsageError(
            f'target "{unnamed}" names no toolchain', help="write, for example, -toolchain=native"
        )
    executable = load(artifact)
    try:
        return LazyVariants(Path(artifact), executable, chosen, calls, SizedExecutables(most), on_note)
    except UsageError:
        executable.close()
        raise


class LazyVariants(ClosedOnExit):
    """An executable with variants that are made while it is used; called as `Executable` is.

    It is safe to call from several threads. As a context manager it closes itself.

    Args:
        artifact: Path of its artifact.
        executable: The program for every size; closed with this object.
        targets: Targets that may compile variants.
        calls: Number of calls with a size after which it gets a variant.
        variants: Holds the variants.
        on_note: Called with sentences about variants.
    """

    def __init__(
        self,
        artifact: Path,
        executable: Executable,
        targets: Sequence[Target],
        calls: int,
        variants: SizedExecutables,
        on_note: Callable[[str], object],
    ) -> None:
        names = {dim for info in executable.inputs for dim in info.shape or () if isinstance(dim, str)}
        self._axes = {name: axis for name in sorted(names) if (axis := find_dim(executable.plan, name))}
        if not self._axes:
            raise UsageError(
                f"{artifact} has no symbolic dimension: there is nothing to specialize it for",
                help="tune the model with sizes: intarsia tune --shape batch=1..8",
            )
        self._artifact, self._executable, self._variants = artifact, executable, variants
        self._targets, self._calls, self._on_note = targets, calls, on_note
        self._counts: Counter[Sizes] = Counter()
        self._outcomes: dict[Sizes, str] = {}
        self._lock = Lock()
        self._folder = tempfile.TemporaryDirectory(prefix="intarsia-variants-")
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="intarsia-variants")
        self._process: subprocess.Popen[str] | None = None
        self._is_closed = False
        self._last: Future[None] | None = None

    @property
    def executable(self) -> Executable:
        """The program for every size."""
        return self._executable

    @property
    def outcomes(self) -> Mapping[str, str]:
        """What became of the sizes that came often, by sizes as text: "" for a variant, else why not."""
        with self._lock:
            return MappingProxyType({self._text(sizes): text for sizes, text in self._outcomes.items()})

    def __call__(self, /, *args: object, **named: object) -> Any:
        """Run the program; see `Executable.__call__`."""
        return self._chosen(args, named)(*args, **named)

    def run_flat(self, /, *args: object, **named: object) -> list[Value]:
        """Run the program and return its results as a flat list; see `Executable.run_flat`."""
        return self._chosen(args, named).run_flat(*args, **named)

    def run_into(
        self,
        inputs: Sequence[object] | Mapping[str, object],
        outputs: Sequence[Array] | Mapping[str, Array],
    ) -> None:
        """Run the program and write its results into buffers; see `Executable.run_into`."""
        args, named = ((), inputs) if isinstance(inputs, Mapping) else (inputs, {})
        self._chosen(args, named).run_into(inputs, outputs)

    def wait(self) -> None:
        """Wait until the variants that were begun are done."""
        if self._last is not None:
            self._last.result()

    def close(self) -> None:
        """Stop making variants, and release everything; closing again does nothing."""
        with self._lock:
            self._is_closed = True
            if self._process is not None:
                self._process.kill()
        self._thread.shutdown(cancel_futures=True)
        self._variants.clear()
        self._executable.close()
        self._folder.cleanup()

    def _chosen(self, args: Sequence[object], named: Mapping[str, object]) -> Executable:
        sizes = self._sizes_of(args, named)
        if sizes is None:  # the program for every size explains what is wrong
            return self._executable
        variant = self._variants.find(sizes)
        if variant is not None:
            return variant
        self._count(sizes)
        return self._executable

    def _sizes_of(self, args: Sequence[object], named: Mapping[str, object]) -> Sizes | None:
        """Return the sizes of the symbolic dimensions; None for inputs without them."""
        infos, sizes = self._executable.inputs, []
        for number, axis in self._axes.values():
            value = args[number] if number < len(args) else named.get(infos[number].name)
            shape = getattr(value, "shape", ())
            if axis >= len(shape):
                return None
            sizes.append(int(shape[axis]))
        return tuple(sizes)

    def _count(self, sizes: Sizes) -> None:
        """Count a call, and begin a variant if there were enough of them."""
        with self._lock:
            if sizes in self._outcomes or self._is_closed:
                return
            if len(self._counts) >= _MOST_COUNTED:
                self._counts.clear()
                self._outcomes.clear()
            self._counts[sizes] += 1
            if self._counts[sizes] != self._calls:
                return
            self._last = self._thread.submit(self._make, sizes)

    def _make(self, sizes: Sizes) -> None:
        """Make a variant in a process beside, and swap it in."""
        text = self._text(sizes)
        out = Path(self._folder.name) / "_".join(map(str, sizes))
        reason = self._run_process(sizes, out)
        variant = None
        if not reason:
            try:
                variant = load(out)
            except IntarsiaError as error:
                reason = error.problem
        with self._lock:
            if self._is_closed:
                return
            self._outcomes[sizes] = reason
            left = None if variant is None else self._variants.add(sizes, variant)
            if left is not None:  # it may come back
                self._outcomes.pop(left, None)
                self._counts[left] = 0
        self._on_note(f"no variant for {text}: {reason}" if reason else f"calls with {text} run a variant")

    def _run_process(self, sizes: Sizes, out: Path) -> str:
        """Return why there is no variant; "" if there is one."""
        words = dict(zip(self._axes, sizes, strict=True))
        module = "intarsia.driver.lazy_variants.make_variant"
        command = [sys.executable, "-m", module, str(self._artifact), json.dumps(words), str(out)]
        with self._lock:
            if self._is_closed:
                return "closed"
            self._process = subprocess.Popen(  # noqa: S603 -- the same Python with our own code
                [*command, *map(str, self._targets)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=copy_environment(),
            )
        output, errors = self._process.communicate()
        if self._process.returncode:
            last = errors.strip().splitlines()[-1:] or [f"exit status {self._process.returncode}"]
            return f"its process failed: {last[0]}"
        return str(json.loads(output.splitlines()[-1]))

    def _text(self, sizes: Sizes) -> str:
        return ", ".join(f"{name}={size}" for name, size in zip(self._axes, sizes, strict=True))
