"""The fuzzers find each thing that a reader must not do, and the kinds hold a few runs."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random

import onnx
import pytest
from checks.fuzz import run
from checks.fuzz.kinds import Kind, _database, make_kinds, without_llvm
from checks.fuzz.mutate import mutated
from checks.fuzz.mutate_model import model_mutated
from checks.fuzz.mutate_structure import (
    Mutation,
    cells_mutated,
    first_line_mutated,
    json_mutated,
    tokens_mutated,
)
from checks.fuzz.run import fuzz

from intarsia.native.object_code import llvm_loader
from intarsia.support.errors import ArtifactError

SEED = b"a seed of some bytes, with the numbers 12 and 345"


def fails(data: bytes) -> None:
    raise KeyError("planted")


def hangs(data: bytes) -> None:
    time.sleep(60)


def ends(data: bytes) -> None:
    os.abort()


def takes_memory(data: bytes) -> None:
    bytearray(8 << 30)


def refuses(data: bytes) -> None:
    raise ArtifactError("damaged")


@pytest.mark.parametrize(
    ("read", "problem"),
    [
        (fails, "KeyError in test_fuzz.py"),
        (hangs, "takes more than 0.2 s"),
        (ends, "ends the process: SIGABRT"),
        (takes_memory, "takes more than 2 GiB"),
    ],
)
def test_planted_bugs_are_found(
    read: Callable[[bytes], None], problem: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(run, "SECONDS", 0.2)

    def sometimes(data: bytes) -> None:
        if b"345" not in data:
            read(data)

    findings = fuzz("planted", Kind([SEED], sometimes), 12, 3)
    assert findings
    assert all(finding.problem.startswith(problem) for finding in findings)
    expected = [mutated([SEED], Random(f"planted 3 {number}")) for number in range(12)]
    wrong = [(number, data) for number, data in enumerate(expected) if b"345" not in data]
    assert [(finding.number, finding.data) for finding in findings] == wrong, "each, and the runs go on"
    saved = findings[0].save(tmp_path)
    assert saved.read_bytes() == findings[0].data


def test_errors_of_readers_are_no_findings() -> None:
    assert fuzz("refused", Kind([SEED], refuses), 50, 0) == []


def test_inputs_of_the_corpus_run_first() -> None:
    (finding,) = fuzz(
        "kept", Kind([SEED], lambda data: fails(data) if data == b"old" else None), 5, 0, [b"", b"old"]
    )
    assert (finding.number, finding.data) == (-1, b"old")


def read_lines(data: bytes) -> None:
    for line in data.splitlines():
        json.loads(line)


DOCUMENT = b'{"a": [1, {"b": null}], "c": "text"}'


@pytest.mark.parametrize(
    ("change", "seed", "read"),
    [
        (json_mutated, DOCUMENT, json.loads),
        (json_mutated, DOCUMENT + b"\n" + DOCUMENT + b"\n", read_lines),
        (first_line_mutated, DOCUMENT + b"\n\0\xff", lambda data: json.loads(data.partition(b"\n")[0])),
        (tokens_mutated, b"A, B{c=[1, 2]}", bytes.decode),
        (model_mutated, b"", onnx.load_model_from_string),
        (cells_mutated, b"", sqlite3.Connection),
    ],
)
def test_changes_keep_the_form(
    change: Mutation, seed: bytes, read: Callable[[bytes], object], tmp_path: Path
) -> None:
    seeds = [seed or _database(tmp_path)[0]]
    results = {change(seeds, Random(number)) for number in range(40)}
    assert results == {change(seeds, Random(number)) for number in range(40)}
    assert len(results - {*seeds}) > 20, "most differ from the seed"
    for data in results:
        if change is cells_mutated:
            (tmp_path / "changed").write_bytes(data)
            with closing(sqlite3.connect(tmp_path / "changed")) as connection:
                assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        else:
            read(data)


@pytest.mark.slow
def test_files_with_right_digests_are_read_beyond_them(tmp_path: Path) -> None:
    contents = make_kinds(tmp_path)["contents"]
    for seed in contents.seeds:
        contents.read(seed)
    weights = next(seed for seed in contents.seeds if seed.startswith(b"constants.safetensors"))
    with pytest.raises(ArtifactError, match=r"constants\.safetensors") as caught:
        contents.read(weights[:-8])
    assert "has no tensor" in str(caught.value)  # and not that the digest is wrong
    contents.read(weights)  # the others are as they were


@pytest.mark.slow
def test_every_kind_holds_a_few_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llvm_loader, "load_with_llvm", llvm_loader.load_with_llvm)  # restored at the end
    without_llvm()
    corpus = Path(run.__file__).parent / "corpus"
    for name, kind in make_kinds(tmp_path).items():
        for data in kind.seeds:
            kind.read(data)  # a seed is a valid input: else its mutations reach nothing
        kept = [file.read_bytes() for file in sorted((corpus / name).glob("*"))]
        assert fuzz(name, kind, 100, 7, kept) == []
