"""Make the parts of executables that share weights and code and run at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

from intarsia.runtime.contents import Contents
from intarsia.runtime.devices.device import Device
from intarsia.runtime.devices.open_devices import kernel_devices, open_devices, threads_of
from intarsia.runtime.kernel import ClonableKernel, ClosableKernel, Kernel, KernelSource
from intarsia.runtime.stream_choice import StreamChoice
from intarsia.runtime.toolchain_version import usable_loader
from intarsia.support.errors import UsageError
from intarsia.target.target import Target


def clone_parts(contents: Contents, count: int, threads: int | None) -> list[dict[str, Any]]:
    """Return the arguments of `Executable` for each of several clones.

    Args:
        contents: Parts of the executable.
        count: Number of clones, 1 or more.
        threads: Number of threads of each kernel; None for those of the executable's.

    Raises:
        CompileError: A toolchain cannot run a kernel on so many threads.
        UsageError: `count` or `threads` is not positive.
    """
    for name, number in (("count", count), ("threads", threads)):
        if number is not None and number < 1:
            raise UsageError(f"{name} is {number}, expected 1 or more")
    with ExitStack() as closing:
        sets = _kernel_sets(closing, contents, count, threads)
        closing.pop_all()  # the clones close them from here on
    return [
        {
            "plan": contents.plan,
            "kernels": kernels,
            "constants": contents.constants,
            "provenance": contents.make_provenance,
            "kernel_names": contents.kernel_names,
            "self_test": contents.self_test,
            "explanation": contents.explanation,
            "devices": devices,
        }
        for kernels, devices in sets
    ]


def parts_with_streams(contents: Contents, choice: StreamChoice) -> dict[str, Any]:
    """Return the arguments of `Executable` for a clone whose plan says how pools are to run it."""
    (parts,) = clone_parts(contents, 1, None)
    return {**parts, "plan": replace(contents.plan, streams=choice)}


def clone_kernel(kernel: Kernel, count: int, threads: int | None) -> Sequence[Kernel]:
    """Return clones of a kernel; one that has none of its own is loaded again, on the same weights.

    Raises:
        CompileError: Its toolchain cannot run it on so many threads.
        UsageError: It is closed.
    """
    if isinstance(kernel, ClonableKernel):
        return kernel.clones(count, threads)
    loader, _ = usable_loader(kernel.source.toolchain)
    source, blob = source_on_threads(kernel.source, threads), kernel.blob()
    return [loader.load(source, blob) for _ in range(count)]


def source_on_threads(source: KernelSource, threads: int | None) -> KernelSource:
    """Return a source whose target has so many threads; the source itself if None is given."""
    if threads is None:
        return source
    return replace(source, target=str(Target(source.target).with_options(threads=threads)))


def _kernel_sets(
    closing: ExitStack, contents: Contents, count: int, threads: int | None
) -> list[tuple[Sequence[Kernel], Sequence[Device]]]:
    """Return kernels and devices of each clone; `closing` closes them."""
    if contents.plan.devices:
        return [_on_devices(closing, contents, threads) for _ in range(count)]
    clones = []
    for kernel in contents.kernels:
        clones.append(clone_kernel(kernel, count, threads))
        _close_all(closing, clones[-1])
    return [(tuple(kernels), ()) for kernels in zip(*clones, strict=True)] or [((), ())] * count


def _on_devices(
    closing: ExitStack, contents: Contents, threads: int | None
) -> tuple[Sequence[Kernel], Sequence[Device]]:
    """Return kernels made in the threads of new devices, whose cores the threads of engines inherit."""
    plan = contents.plan
    targets = [source_on_threads(kernel.source, threads).target for kernel in contents.kernels]
    devices = open_devices(plan.devices, threads_of(plan, targets))
    for device in devices:
        closing.callback(device.close)
    kernels: list[Kernel] = []
    for kernel, number in zip(contents.kernels, kernel_devices(plan, len(targets)), strict=True):
        kernels += devices[number].worker.call(partial(clone_kernel, kernel, 1, threads))
        _close_all(closing, kernels[-1:])
    return kernels, devices


def _close_all(closing: ExitStack, kernels: Sequence[Kernel]) -> None:
    for kernel in kernels:
        if isinstance(kernel, ClosableKernel):
            closing.callback(kernel.close)
