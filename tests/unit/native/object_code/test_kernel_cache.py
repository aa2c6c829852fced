"""The cache of kernels on disk: what is read is what was written, or nothing."""

from __future__ import annotations

import multiprocessing
import os
import random
import warnings
from pathlib import Path

import pytest
from tests.native_ir import ADD, object_code

from intarsia.native.machine.isa import Isa
from intarsia.native.object_code.codegen import CodegenOptions, IrPasses
from intarsia.native.object_code.kernel_cache import CachedKernel, KernelCache, kernel_key
from intarsia.support.errors import OutputError

ISA = Isa("x86_64", "znver3", ("avx2",))


def entries(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*/*"))


def test_what_was_written_is_read(tmp_path: Path) -> None:
    cache, key = KernelCache(tmp_path / "kernels"), kernel_key(ADD, ISA)
    assert cache.get(key) is None
    kernel = CachedKernel(object_code("add"), 128)
    cache.put(key, kernel)
    assert cache.get(key) == kernel
    assert KernelCache(tmp_path / "kernels").get(key) == kernel
    assert cache.get(kernel_key("other", ISA)) is None


def test_keys_tell_everything_apart() -> None:
    options = CodegenOptions(IrPasses.O3)
    keys = {
        kernel_key(ADD, ISA),
        kernel_key(ADD + " ", ISA),
        kernel_key(ADD, Isa("x86_64", "znver3", ("avx",))),
        kernel_key(ADD, ISA, options),
        kernel_key(ADD, ISA, CodegenOptions(level=2)),
        kernel_key(ADD, ISA, CodegenOptions(prefetch=False)),
    }
    assert len(keys) == 6
    assert kernel_key(ADD, ISA) in keys


def test_keys_change_with_the_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    before = kernel_key(ADD, ISA)
    monkeypatch.setattr("intarsia.native.object_code.kernel_cache._generator_version", lambda: "another")
    assert kernel_key(ADD, ISA) != before


def test_each_kernel_is_built_once(tmp_path: Path) -> None:
    cache, built = KernelCache(tmp_path), []

    def build() -> CachedKernel:
        built.append(1)
        return CachedKernel(b"code")

    for _ in range(3):
        assert cache.get_or_build("ab12", build) == CachedKernel(b"code")
    assert len(built) == 1


def test_damaged_entries_are_built_again(tmp_path: Path) -> None:
    cache, kernel, choose = KernelCache(tmp_path), CachedKernel(bytes(range(256)) * 4, 64), random.Random(3)
    cache.put("ab12", kernel)
    (path,) = entries(tmp_path)
    whole = path.read_bytes()
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[choose.randrange(len(whole))] ^= 1 << choose.randrange(8)
        path.write_bytes(bytes(damaged) if choose.random() < 0.7 else whole[: choose.randrange(len(whole))])
        assert cache.get("ab12") in {None, kernel}  # spaces of the head may differ
        assert cache.get_or_build("ab12", lambda: kernel) == kernel
        assert path.read_bytes() == whole


def test_entry_of_another_key_counts_as_damaged(tmp_path: Path) -> None:
    cache = KernelCache(tmp_path)
    cache.put("ab12", CachedKernel(b"code"))
    (path,) = entries(tmp_path)
    path.rename(path.with_name("ab34.kernel"))
    assert cache.get("ab34") is None
    assert not entries(tmp_path)


def test_least_recently_used_entries_go_first(tmp_path: Path) -> None:
    size = 1000
    cache = KernelCache(tmp_path, limit=20 * size)
    for number in range(15):
        cache.put(f"a{number:02}", CachedKernel(bytes(size)))
        (path,) = tmp_path.glob(f"*/a{number:02}.kernel")
        os.utime(path, (number, number))
    assert cache.get("a00") is not None  # used now
    for number in range(15, 21):
        cache.put(f"a{number:02}", CachedKernel(bytes(size)))
    kept = {path.stem for path in entries(tmp_path)}
    assert "a00" in kept
    assert "a01" not in kept
    assert "a20" in kept
    assert sum(path.stat().st_size for path in entries(tmp_path)) <= cache.limit


def test_remains_of_killed_processes_are_removed(tmp_path: Path) -> None:
    remains = tmp_path / "ab" / ".ab12.kernel.x8k2"
    remains.mkdir(parents=True)
    (remains / "ab12.kernel").write_bytes(b"half")
    os.utime(remains, (1, 1))
    fresh = tmp_path / "ab" / ".ab34.kernel.y9l3"
    fresh.mkdir()
    KernelCache(tmp_path, limit=100).put("cd56", CachedKernel(b"code"))
    assert not remains.exists()
    assert fresh.exists()


def test_folder_that_cannot_be_written_is_one_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    cache = KernelCache(tmp_path / "file")
    with pytest.warns(RuntimeWarning, match="kernels are not kept: cannot write"):
        assert cache.get_or_build("ab12", lambda: CachedKernel(b"code")).object_code == b"code"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cache.get_or_build("ab12", lambda: CachedKernel(b"code")).object_code == b"code"
    with pytest.raises(OutputError):
        cache.put("ab12", CachedKernel(b"code"))


@pytest.mark.parametrize("key", ["", "../escape", "a/b"])
def test_what_is_no_key(tmp_path: Path, key: str) -> None:
    with pytest.raises(ValueError, match="not a key"):
        KernelCache(tmp_path).get(key)


def work_on_it(folder: str, seed: int) -> bool:
    """Read and write the same few entries as others do, while old ones are removed."""
    cache, choose = KernelCache(Path(folder), limit=20_000), random.Random(seed)
    for _ in range(300):
        number = choose.randrange(30)
        expected = CachedKernel(bytes([number]) * 1000, number)
        if cache.get_or_build(f"k{number}", lambda kernel=expected: kernel) != expected:  # type: ignore[misc]  # a default
            return False
    return True


@pytest.mark.processes
def test_several_processes(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(3) as processes:
        assert all(processes.starmap(work_on_it, [(str(tmp_path), seed) for seed in range(3)]))
