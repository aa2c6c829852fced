"""Build the models that the cache lacks; runs in the environment .corpus.

The packages are imported once. Each model is then built in a forked process, within a time limit, so that
recipes do not share state.

Usage: python -m corpus.build_models [NAME ...] [--draw SEED] [--jobs N]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx

from corpus.draw import Draw
from corpus.model_cache import Entry, entry_of
from corpus.recipe import BuiltModel, Recipe, recipes

TIME_LIMIT: Final = 240
"""Seconds for one model; the slowest takes 20 s on a quiet machine with two cores."""


def main() -> None:
    """Build the models that the cache lacks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--draw", type=int)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    table = recipes()
    missing = [
        recipe
        for recipe in (table[name] for name in options.names or table)
        if not entry_of(recipe, options.draw).is_built
    ]
    if missing:
        _import_packages()
        _build_all(missing, options.draw, options.jobs)


def build(recipe: Recipe, seed: int | None, folder: Path) -> None:
    """Build one model into a folder."""
    draw = Draw(recipe.name, seed)
    np.random.seed(draw.seed % 2**31)  # noqa: NPY002  # scikit-learn's default generator
    if torch := sys.modules.get("torch"):
        torch.manual_seed(draw.seed)
    built = recipe.build(draw)
    _save(built, folder)
    saved = onnx.load(folder / "model.onnx", load_external_data=False)
    record = {
        "name": recipe.name,
        "opset": next((entry.version for entry in saved.opset_import if not entry.domain), 0),
        "domains": sorted({entry.domain for entry in saved.opset_import} - {""}),
        "operators": Counter(_operators(saved.graph)),
        "functions": len(saved.functions),
        "texts": any(_is_text(info) for info in (*saved.graph.input, *saved.graph.output)),
        "bytes": sum(file.stat().st_size for file in folder.iterdir()),
        "drawn": draw.drawn,
    }
    (folder / "model.json").write_text(json.dumps(record, indent=1, default=str))


def _save(built: BuiltModel, folder: Path) -> None:
    path = folder / "model.onnx"
    external = built.storage != "inline"
    onnx.save(built.proto, path, save_as_external_data=external, location="weights.bin", size_threshold=64)
    if built.storage == "from external":
        whole = onnx.load(path)
        (folder / "weights.bin").unlink()
        onnx.save(whole, path)
    arrays: dict[str, Any] = dict(built.inputs)
    for name, array in built.inputs.items():
        if array.dtype.kind == "V" or array.dtype.name == "bfloat16":  # .npz files lose the type bfloat16
            arrays[name] = array.view(np.uint16)
            arrays[f"{name}:bfloat16"] = np.zeros(0)
    np.savez(folder / "inputs.npz", **arrays)


def _is_text(info: onnx.ValueInfoProto) -> bool:
    kind = info.type.WhichOneof("value")
    if kind == "tensor_type":
        return bool(info.type.tensor_type.elem_type == onnx.TensorProto.STRING)
    return kind == "sequence_type" and "key_type: 8" in str(info.type)  # ZipMap with labels of strings


def _operators(graph: onnx.GraphProto) -> list[str]:
    """Return the operators of a graph and of those within it, with repetitions."""
    names = []
    for node in graph.node:
        names.append(f"{node.domain}::{node.op_type}" if node.domain else node.op_type)
        for attribute in node.attribute:
            for nested in (attribute.g, *attribute.graphs):
                names += _operators(nested)
    return names


def _import_packages() -> None:
    """Import what most recipes need, before processes are forked."""
    warnings.simplefilter("ignore")
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", OMP_NUM_THREADS="1")
    import torch

    from corpus.torch_packages import torchvision

    torch.set_num_threads(1)
    torchvision()
    import skl2onnx  # noqa: F401
    import timm  # noqa: F401
    import transformers.modeling_utils  # noqa: F401

    # The first export imports the compiler and loads all translations of operators.
    torch.onnx.export(torch.nn.ReLU(), (torch.zeros(1),), dynamo=True, verbose=False)


def _build_all(missing: list[Recipe], seed: int | None, jobs: int) -> None:
    entries = {
        recipe.name: entry_of(recipe, seed) for recipe in missing
    }  # digests are computed once, before a source file can change
    waiting, running, built = list(reversed(missing)), dict[int, tuple[Recipe, Entry, Path, float]](), 0
    while waiting or running:
        while waiting and len(running) < jobs:
            recipe = waiting.pop()
            entry = entries[recipe.name]
            partial = entry.folder.with_name(f"{entry.folder.name}.{os.getpid()}")
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            running[_start(recipe, seed, partial)] = recipe, entry, partial, time.monotonic()
        for pid, (recipe, entry, partial, began) in tuple(running.items()):
            if time.monotonic() - began > TIME_LIMIT:
                os.kill(pid, signal.SIGKILL)
            done, status = os.waitpid(pid, os.WNOHANG)
            if not done:
                continue
            del running[pid]
            built += 1
            seconds = time.monotonic() - began
            if status and not (partial / "failed.txt").exists():
                (partial / "failed.txt").write_text(f"the process ended with status {status}")
            shutil.rmtree(entry.folder, ignore_errors=True)
            # A rename is atomic: another process sees a complete entry or none.
            partial.rename(entry.folder)
            failure = entry.failure
            text = f"failed: {failure.strip().splitlines()[-1]}" if failure else f"{seconds:.1f} s"
            print(f"built {built}/{len(missing)}  {recipe.name}: {text}", flush=True)
        time.sleep(0.02)


def _start(recipe: Recipe, seed: int | None, folder: Path) -> int:
    """Fork a process that builds one model, and return its id."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        with (folder / "log.txt").open("w") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
            build(recipe, seed, folder)
        (folder / "log.txt").unlink()
        status = 0
    except BaseException:
        (folder / "failed.txt").write_text(traceback.format_exc())
    finally:
        os._exit(status)


if __name__ == "__main__":
    main()
