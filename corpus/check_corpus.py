"""Build missing models, check each model in a worker process, print the verdicts, and write docs/models.md.

Usage: python -m corpus.check_corpus [NAME ...] [--draw SEED] [--jobs N] [--json FILE] [--write]

Without names and --draw the page is compared with the results; --write writes it. The exit code is 1 if, for
a model that onnxruntime runs, the import fails, no toolchain runs the whole model, a toolchain computes a
wrong result, or an exception is not an IntarsiaError; if a toolchain is not usable; and, if all models are
checked, if native runs less than 95 % of the float models whole. A page that differs is only a note, because
engines differ from CPU to CPU.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Final

from corpus.check_model import TOOLCHAINS, Steps, check_artifacts, check_model
from corpus.model_cache import Entry, entry_of
from corpus.models_page import PAGE, models_page
from corpus.recipe import Recipe, recipes
from corpus.verdict import Verdict, share_problems
from intarsia.measure.worker_pool import Task, TaskFailedError, WorkerPool
from intarsia.toolchain import Unavailable, installed_toolchains
from intarsia.toolchain.package import missing

TIME_LIMIT: Final = 240
"""Seconds for one model with every toolchain."""

MEMORY_LIMIT: Final = 6 * 2**30
"""Bytes of memory for one model, with all engines and the reference loaded."""

MODELS_OF_A_PROCESS: Final = 12
"""Models that a process checks before a new one replaces it.

Importing the engines takes half as long as checking a small model.
"""

CRASHES: Final = 4
"""Largest number of processes that check a model; a crash fails one step, and a new process continues."""


def main() -> int:
    """Check the corpus, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--draw", type=int, help="check random configurations of this seed instead")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--json", type=Path, help="write the outcome of every step to this file")
    parser.add_argument("--write", action="store_true", help="write docs/models.md")
    parser.add_argument(
        "--builder", default=".corpus/bin/python", help="Python of the environment that builds models"
    )
    options = parser.parse_args()
    _find_torch(Path(options.builder))
    table = recipes()
    unknown = [name for name in options.names if name not in table]
    if unknown:
        parser.error(f"no model is called {unknown[0]!r}; docs/models.md lists them")
    chosen = [table[name] for name in options.names or table]
    _build(chosen, options)
    began = time.monotonic()
    verdicts = _check_all(chosen, options)
    if options.json:
        options.json.write_text(
            json.dumps({verdict.recipe.name: _facts(verdict) for verdict in verdicts}, indent=1)
        )
    problems = list(_unusable_toolchains())
    problems += [f"{verdict.recipe.name}: {text}" for verdict in verdicts for text in verdict.problems]
    print(f"\n{len(verdicts)} models checked in {time.monotonic() - began:.0f} s")
    print(_times(verdicts))
    if options.draw is None and not options.names:
        problems += share_problems(verdicts)
        _compare_page(models_page(verdicts), options.write)
    for problem in problems:
        print(f"problem: {problem}")
    return 1 if problems else 0


def _find_torch(builder: Path) -> None:
    """Let this process and its workers import PyTorch from the environment that builds models.

    Its packages come last on the path, so that packages of .venv take precedence.

    Args:
        builder: Path of the Python of that environment.
    """
    sys.path += [str(folder.resolve()) for folder in builder.parent.parent.glob("lib/python*/site-packages")]


def _unusable_toolchains() -> Iterator[str]:
    """Yield why a toolchain is not usable; its models were not really tried."""
    for status in installed_toolchains():
        if status.name in TOOLCHAINS and isinstance(status.availability, Unavailable):
            yield missing(status.name, status.availability).problem


def _build(chosen: list[Recipe], options: argparse.Namespace) -> None:
    """Build the models that the cache lacks, in the other environment."""
    missing = [recipe.name for recipe in chosen if not entry_of(recipe, options.draw).is_built]
    if not missing:
        return
    command = [options.builder, "-m", "corpus.build_models", *missing, "--jobs", str(options.jobs)]
    if options.draw is not None:
        command += ["--draw", str(options.draw)]
    began = time.monotonic()
    subprocess.run(command, check=False)  # the error of a failed build is in the cache
    print(f"{len(missing)} models built in {time.monotonic() - began:.0f} s\n", flush=True)


def _check_all(chosen: list[Recipe], options: argparse.Namespace) -> list[Verdict]:
    """Check the models in worker processes, and print a line for each when it is done."""
    with (
        tempfile.TemporaryDirectory(prefix="intarsia-corpus-") as folder,
        _pool(options.jobs) as checking,
        _pool(options.jobs) as loading,
        ThreadPoolExecutor(options.jobs) as threads,
    ):
        futures = [
            threads.submit(
                _check, recipe, entry_of(recipe, options.draw), Path(folder) / recipe.name, checking, loading
            )
            for recipe in chosen
        ]
        for number, future in enumerate(as_completed(futures), 1):
            print(f"{number:3}/{len(chosen)}  {future.result().line()}", flush=True)
    return [future.result() for future in futures]


def _pool(jobs: int) -> WorkerPool:
    return WorkerPool(jobs, max_tasks=MODELS_OF_A_PROCESS, preload=("corpus.check_model",))


def _check(recipe: Recipe, entry: Entry, folder: Path, checking: WorkerPool, loading: WorkerPool) -> Verdict:
    """Check one model, and check its artifacts in a process that compiles nothing.

    Args:
        recipe: Recipe of the model.
        entry: Cache entry of the model.
        folder: Path of a new folder for steps and artifacts.
        checking: Pool of processes that import, compile and judge.
        loading: Pool of processes that only load artifacts.
    """
    if not entry.is_built:
        reason = (entry.failure or "the builder did not run").strip().splitlines()[-1]
        return Verdict(recipe, {}, {"build": {"status": "failed", "message": reason}})
    folder.mkdir()
    steps = Steps(folder / "steps.jsonl")
    _run_until_done(Task(check_model, (entry.folder, folder), {}, TIME_LIMIT, MEMORY_LIMIT), steps, checking)
    _run_until_done(Task(check_artifacts, (folder,), {}, TIME_LIMIT, MEMORY_LIMIT), steps, loading)
    verdict = Verdict(recipe, entry.record(), steps.outcomes(), steps.seconds())
    shutil.rmtree(folder)
    return verdict


def _run_until_done(task: Task[None], steps: Steps, pool: WorkerPool) -> None:
    """Run a task, and again after each crash; the steps that ended or crashed are not repeated."""
    for _ in range(CRASHES):
        try:
            pool.submit_task(task).result()
        except TaskFailedError as error:
            if steps.fail_interrupted(error.problem) is None:  # the process ended between two steps
                steps.run("check", lambda text=str(error): {"status": "crashed", "message": text})  # type: ignore[misc]
                return
        else:
            return


def _facts(verdict: Verdict) -> dict[str, Any]:
    """Return the JSON form of a verdict: the configuration, and each step with its seconds."""
    steps = {
        name: {**outcome, "seconds": verdict.seconds.get(name)} for name, outcome in verdict.outcomes.items()
    }
    return {"drawn": verdict.record.get("drawn", {}), "steps": steps}


def _times(verdicts: Sequence[Verdict]) -> str:
    """Return where the time went: seconds by step, and the slowest models."""
    by_step: Counter[str] = Counter()
    for verdict in verdicts:
        by_step.update({_step_kind(name): seconds for name, seconds in verdict.seconds.items()})
    by_model = Counter({verdict.recipe.name: sum(verdict.seconds.values()) for verdict in verdicts})
    lines = [("seconds by step", by_step), ("slowest models", by_model)]
    return "\n".join(
        f"{title}: " + ", ".join(f"{name} {seconds:.0f}" for name, seconds in counter.most_common(12))
        for title, counter in lines
    )


def _step_kind(name: str) -> str:
    return "artifacts" if name.endswith(" artifact") else name


def _compare_page(page: str, write: bool) -> None:
    """Write the page, or print the difference to it; engines differ from CPU to CPU."""
    before = PAGE.read_text() if PAGE.exists() else ""
    if write:
        PAGE.write_text(page)
    elif before != page:
        print(f"note: {PAGE} differs from this run; `make corpus-page` updates it")
        lines = difflib.unified_diff(before.splitlines(), page.splitlines(), "page", "run", lineterm="", n=0)
        print("\n".join(line[:200] for line in lines))


if __name__ == "__main__":
    sys.exit(main())
