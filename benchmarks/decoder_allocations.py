"""Count the memory that a step of a decoder allocates, beside the engines: calls of malloc, and page faults.

A library between the process and libc counts, built by gcc when this begins. Memory that an engine keeps in
an arena of its own is counted when the arena grows.

    python -m benchmarks.decoder_allocations gpt2
"""

from __future__ import annotations

import argparse
import ctypes
import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import onnx
from examples.decoder_engines import open_engine
from examples.decoder_model import write_decoder
from examples.decoder_size import SIZES

CONTENDERS: Final = ("intarsia native", "onnxruntime", "openvino")
_STEPS: Final = 100
_PASTS: Final = (300, 600)
_LARGE: Final = 4096
"""Bytes from which on an allocation is called large: a page."""
_COUNTER: Final = """
#include <errno.h>
#include <stddef.h>
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
long counted_calls, counted_bytes, counted_large;
int counter_is_on;
static void count(size_t n) {
  if (!counter_is_on) return;
  __sync_fetch_and_add(&counted_calls, 1);
  __sync_fetch_and_add(&counted_bytes, (long)n);
  if (n >= %d) __sync_fetch_and_add(&counted_large, 1);
}
void *malloc(size_t n) { count(n); return __libc_malloc(n); }
void *calloc(size_t a, size_t b) { count(a * b); return __libc_calloc(a, b); }
void *realloc(void *p, size_t n) { count(n); return __libc_realloc(p, n); }
void *memalign(size_t a, size_t n) { count(n); return __libc_memalign(a, n); }
void *aligned_alloc(size_t a, size_t n) { count(n); return __libc_memalign(a, n); }
int posix_memalign(void **p, size_t a, size_t n) {
  count(n);
  *p = __libc_memalign(a, n);
  return *p ? 0 : ENOMEM;
}
"""


def main() -> None:
    """Print the allocations of a step of each contender at two lengths of the past."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("size", nargs="?", choices=SIZES, default="gpt2_tiny")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--counter", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if arguments.counter is not None:
            count(arguments, Path(folder) / "decoder.onnx")
            return
        library = Path(folder) / "counter.so"
        command = ["gcc", "-O2", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)]
        subprocess.run(command, input=_COUNTER % _LARGE, text=True, check=True)
        again = [sys.executable, "-m", "benchmarks.decoder_allocations", *sys.argv[1:]]
        environment = {**os.environ, "LD_PRELOAD": str(library)}
        subprocess.run([*again, "--counter", str(library)], env=environment, check=True)


def count(arguments: argparse.Namespace, path: Path) -> None:
    """Count in this process, which the library was loaded into."""
    library = ctypes.CDLL(str(arguments.counter))
    names = ("counted_calls", "counted_bytes", "counted_large")
    calls, size, large = (ctypes.c_long.in_dll(library, name) for name in names)
    is_on = ctypes.c_int.in_dll(library, "counter_is_on")
    onnx.save(write_decoder(replace(SIZES[arguments.size], layers=arguments.layers, longest=2048)), path)
    tokens = np.random.default_rng(0).integers(0, 97, (1, max(_PASTS) + _STEPS))
    print(f"{'':>16}   past  calls  KiB      of {_LARGE} bytes or more  page faults (of a step)")
    for name in CONTENDERS:
        engine = open_engine(name, path, arguments.threads)
        engine.read(tokens[:, :1])
        for step in range(1, max(_PASTS) + _STEPS):
            if step in _PASTS:
                calls.value = size.value = large.value = 0
                faults, is_on.value = resource.getrusage(resource.RUSAGE_SELF).ru_minflt, 1
            engine.read(tokens[:, step : step + 1])
            if step - _STEPS + 1 in _PASTS:
                is_on.value = 0
                faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
                row = calls.value, size.value / 1024, large.value, faults
                values = "  ".join(f"{value / _STEPS:10.1f}" for value in row)
                print(f"{name:>16}  {step - _STEPS + 1:5}  {values}", flush=True)


if __name__ == "__main__":
    main()
