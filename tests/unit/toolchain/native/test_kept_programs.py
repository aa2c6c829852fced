"""Compiled forms on disk: a program that was built before is loaded, and any other one is compiled."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model
from intarsia.ir import IRModule
from intarsia.passes import partition_whole
from intarsia.runtime.kernel import KernelSource
from intarsia.support.environment import PROGRAM_CACHE
from intarsia.target import Target
from intarsia.toolchain.native import kept_programs
from intarsia.toolchain.native.kept_programs import ProgramCache, program_key
from intarsia.toolchain.native.toolchain import Native
from intarsia.transform import PassContext
from intarsia.transform.instrument import PassTimingInstrument

MODEL = build_model("mnist")
SOURCE = KernelSource(
    "native", "cpu -toolchain=native -threads=1", b"", {"w": np.arange(20, dtype=np.float32).reshape(4, 5)}
)


def marked_program() -> IRModule:
    return partition_whole(from_onnx(MODEL), Target.for_toolchain("native", threads=1))


def run_program(program: IRModule) -> npt.NDArray[np.float32]:
    image = np.random.default_rng(3).standard_normal((1, 1, 28, 28)).astype(np.float32)
    return np.asarray(build(program)(image))


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(PROGRAM_CACHE, "64")
    return tmp_path / "intarsia" / "programs"


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*.program"))


def refuse(self: Native, source: KernelSource) -> None:
    raise AssertionError("compiled again")


def test_a_program_is_compiled_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = marked_program()
    first = run_program(program)
    assert len(entries(folder)) == 1
    monkeypatch.setattr(Native, "_compiled", refuse)
    np.testing.assert_array_equal(run_program(program), first)
    timed = PassContext(instruments=[PassTimingInstrument()])
    with pytest.raises(AssertionError, match="compiled again"), timed:
        run_program(program)
    monkeypatch.setenv(PROGRAM_CACHE, "0")
    with pytest.raises(AssertionError, match="compiled again"):
        run_program(program)


def test_damaged_forms_are_compiled_again(folder: Path) -> None:
    program = marked_program()
    first = run_program(program)
    (path,) = entries(folder)
    whole = path.read_bytes()
    middle = len(whole) // 2
    damages = (b"", whole[:middle], whole[:middle] + b"\xff" + whole[middle + 1 :], b"\0" + whole[1:])
    for damaged in damages:
        path.unlink()  # the last build has the file in its memory
        path.write_bytes(damaged)
        np.testing.assert_array_equal(run_program(program), first)
        assert path.read_bytes() == whole


def test_what_does_not_load_is_replaced(folder: Path) -> None:
    program = marked_program()
    first = run_program(program)
    (path,) = entries(folder)
    whole = path.read_bytes()
    path.unlink()
    ProgramCache(folder, 1 << 20).put(path.stem, [b"no region\n"] * 20)
    np.testing.assert_array_equal(run_program(program), first)
    assert path.read_bytes() == whole


def test_keys_tell_sources_apart(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weight = SOURCE.weights["w"]
    last, swapped = weight.copy(), weight.copy()
    last[-1, -1] = 7
    swapped[0, 0], swapped[0, 1] = weight[0, 1], weight[0, 0]
    sources = [
        SOURCE,
        replace(SOURCE, target="cpu -toolchain=native -threads=2"),
        replace(SOURCE, pass_settings='{"opt_level": 0}'),
        *(
            replace(SOURCE, weights={"w": other})
            for other in (last, swapped, weight.reshape(5, 4), weight.astype(np.float16))
        ),
        replace(SOURCE, weights={"v": weight}),
        replace(SOURCE, weights={}),
    ]
    keys = [program_key(source) for source in sources]
    assert len({*keys}) == len(keys)
    assert None not in keys
    assert program_key(replace(SOURCE, weights={"w": weight.copy()})) == keys[0]
    monkeypatch.setattr(kept_programs, "_version", lambda: "another")
    assert program_key(SOURCE) != keys[0]


@pytest.mark.parametrize("option", ["-mcpu=haswell", "-libs=openblas", "-schedules=0123456789abcdef"])
def test_targets_that_name_other_things_have_no_key(folder: Path, option: str) -> None:
    assert program_key(replace(SOURCE, target=f"{SOURCE.target} {option}")) is None


def test_operators_of_other_packages_have_no_key(folder: Path) -> None:
    from onnx import helper

    def source_of(domain: str) -> KernelSource:
        graph = helper.make_graph([], "g", [], [])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(domain, 1)])
        return replace(SOURCE, model=model.SerializeToString())

    assert program_key(source_of("")) is not None
    assert program_key(source_of("org.example")) is None


def test_sources_with_texts_have_no_key(folder: Path) -> None:
    assert program_key(replace(SOURCE, weights={"w": np.array(["a"], object)})) is None


def test_large_forms_are_not_kept(tmp_path: Path) -> None:
    cache = ProgramCache(tmp_path, 1000)
    cache.put("ab1", [bytes(51), bytes(200)])
    assert cache.get("ab1") is None
    cache.put("ab1", [bytes(50), bytes(200)])
    kept = cache.get("ab1")
    assert kept is not None
    assert bytes(kept) == bytes(250)


def test_a_folder_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.warns(RuntimeWarning, match="compiled programs are not kept: cannot write"):
        ProgramCache(tmp_path / "file", 1000).put("ab1", [b"form"])


def test_changed_sources_are_another_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = tmp_path / "a" / "b" / "c"
    (tmp_path / "a" / "passes").mkdir(parents=True)
    package.mkdir(parents=True)
    file = tmp_path / "a" / "passes" / "fold.py"
    file.write_text("x = 1")
    monkeypatch.setattr(kept_programs, "__file__", str(package / "kept_programs.py"))
    before = kept_programs._version.__wrapped__()
    assert kept_programs._version.__wrapped__() == before
    facts = file.stat()
    os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns + 1))
    assert kept_programs._version.__wrapped__() != before
