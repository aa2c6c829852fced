"""Sizes that calls have often get a variant, others run the program for every size."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.onnx_models import model_of

from intarsia import build, from_onnx, load
from intarsia.driver.lazy_variants import LazyVariants, make_variant, specialize_lazily
from intarsia.driver.lazy_variants.sized_executables import SizedExecutables
from intarsia.ir import DimRange, with_dim_ranges
from intarsia.measure.judge.gate import Gate
from intarsia.passes import BindDims, bind_sizes, partition_whole
from intarsia.runtime.kernel import Array
from intarsia.support.errors import InputError, UsageError
from intarsia.target import Target

NATIVE, REFERENCE = Target("cpu -toolchain=native"), Target("cpu -toolchain=reference")
PROGRAM = with_dim_ranges(
    from_onnx(model_of("g (float[rows, cols] x, float[cols] b) => (float[rows, cols] y) { y = Mul (x, b) }")),
    {"rows": DimRange(1, 9)},
)


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lazy") / "m.intarsia"
    with build(partition_whole(PROGRAM, REFERENCE)) as executable:
        executable.save(path)
    return path


def inputs_of(rows: int, cols: int = 4) -> tuple[Array, Array]:
    rng = np.random.default_rng(rows)
    return rng.normal(size=(rows, cols)).astype(np.float32), rng.normal(size=cols).astype(np.float32)


class Making:
    """In place of the process: variants for these sizes double the result, so that one sees them run."""

    def __init__(self, refused: tuple[int, ...] = ()) -> None:
        self.refused, self.made = refused, list[dict[str, int]]()

    def __call__(self, lazy: LazyVariants, sizes: tuple[int, ...], out: Path) -> str:
        words = dict(zip(lazy._axes, sizes, strict=True))
        self.made.append(words)
        if words["rows"] in self.refused:
            return "not faster"
        doubling = from_onnx(
            model_of(
                "g (float[rows, cols] x, float[cols] b) => (float[rows, cols] y) "
                "{ m = Mul (x, b) y = Add (m, m) }"
            )
        )
        with build(partition_whole(bind_sizes(doubling, words), REFERENCE)) as executable:
            executable.save(out)
        return ""


@pytest.fixture
def making(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Making]:
    def install(*refused: int) -> Making:
        made = Making(refused)

        def run(lazy: LazyVariants, sizes: tuple[int, ...], out: Path) -> str:
            return made(lazy, sizes, out)

        monkeypatch.setattr(LazyVariants, "_run_process", run)
        return made

    return install


def factor(lazy: LazyVariants, rows: int, cols: int = 4) -> float:
    """How many times the right result a call gives: 2 by a variant."""
    x, b = inputs_of(rows, cols)
    return float(np.median(np.asarray(lazy(x, b)) / (x * b)))


def test_a_size_that_comes_often_gets_a_variant(artifact: Path, making: Callable[..., Making]) -> None:
    made, notes = making(3), list[str]()
    with specialize_lazily(artifact, calls=3, on_note=notes.append) as lazy:
        assert [factor(lazy, 2) for _ in range(2)] == [1.0, 1.0]
        assert made.made == []
        assert factor(lazy, 2) == 1.0
        lazy.wait()
        assert factor(lazy, 2) == 2.0
        assert (factor(lazy, 5), factor(lazy, 2, 3)) == (1.0, 1.0), "other sizes"
        for _ in range(6):
            assert factor(lazy, 3) == 1.0
        lazy.wait()
        assert factor(lazy, 3) == 1.0
        assert lazy.outcomes == {"cols=4, rows=2": "", "cols=4, rows=3": "not faster"}
    assert made.made == [{"cols": 4, "rows": 2}, {"cols": 4, "rows": 3}], "each once"
    assert notes == [
        "calls with cols=4, rows=2 run a variant",
        "no variant for cols=4, rows=3: not faster",
    ]


def test_every_way_to_call_runs_the_variant(artifact: Path, making: Callable[..., Making]) -> None:
    making()
    x, b = inputs_of(2)
    with specialize_lazily(artifact, calls=1) as lazy:
        lazy(b=b, x=x)
        lazy.wait()
        out = np.empty_like(x)
        lazy.run_into({"x": x, "b": b}, [out])
        np.testing.assert_array_equal(out, 2 * x * b)
        np.testing.assert_array_equal(lazy(x, b=b), out)
        np.testing.assert_array_equal(lazy.run_flat(x, b)[0], out)


def test_the_variant_that_was_not_used_for_longest_leaves(
    artifact: Path, making: Callable[..., Making]
) -> None:
    made = making()
    with specialize_lazily(artifact, calls=1, most=2) as lazy:
        for rows in (2, 3, 2, 4, 3):
            factor(lazy, rows)
            lazy.wait()
        assert [words["rows"] for words in made.made] == [2, 3, 4, 3], "3 left for 4, and came back"
        assert len(lazy._variants) == 2


def test_inputs_that_do_not_fit_are_refused_by_the_program(
    artifact: Path, making: Callable[..., Making]
) -> None:
    making()
    x, b = inputs_of(2)
    with specialize_lazily(artifact, calls=1) as lazy:
        for args in ((), (x,), (3.0, b), (np.float32(1), b), (x, b, b)):
            with pytest.raises(InputError):
                lazy(*args)
        with pytest.raises(InputError, match='dimension "rows" is 10 in input "x", expected 1 to 9'):
            lazy(*inputs_of(10))


def test_many_sizes_leave_memory_flat(
    artifact: Path, making: Callable[..., Making], monkeypatch: pytest.MonkeyPatch
) -> None:
    making()
    monkeypatch.setattr("intarsia.driver.lazy_variants.watched_calls._MOST_COUNTED", 10)
    with specialize_lazily(artifact, calls=2) as lazy:
        for cols in range(1, 40):
            factor(lazy, 2, cols)
        assert len(lazy._counts) <= 10


def test_calls_from_several_threads(artifact: Path, making: Callable[..., Making]) -> None:
    made = making()
    factors: list[float] = []
    with specialize_lazily(artifact, calls=5, most=1) as lazy:
        threads = [
            threading.Thread(target=lambda: factors.extend(factor(lazy, 2 + n % 2) for n in range(20)))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(factors) == 80
    assert set(factors) <= {1.0, 2.0}
    assert made.made


def test_closing_ends_everything(artifact: Path, making: Callable[..., Making]) -> None:
    making()
    lazy = specialize_lazily(artifact, calls=1)
    folder = Path(lazy._folder.name)
    factor(lazy, 2)
    lazy.close()
    lazy.close()
    assert not folder.exists()
    with pytest.raises(UsageError, match="the executable is closed"):
        factor(lazy, 2)


def test_wrong_arguments(artifact: Path, tmp_path: Path) -> None:
    for calls, most in ((0, 1), (1, 0)):
        with pytest.raises(UsageError, match="expected 1 or more"):
            specialize_lazily(artifact, calls=calls, most=most)
    with pytest.raises(UsageError, match="names no toolchain"):
        specialize_lazily(artifact, ["cpu"])
    fixed = tmp_path / "fixed.intarsia"
    with build(partition_whole(BindDims(("rows=2", "cols=3"))(PROGRAM), REFERENCE)) as executable:
        executable.save(fixed)
    with pytest.raises(UsageError, match="has no symbolic dimension"):
        specialize_lazily(fixed)


def test_the_last_used_executables_stay() -> None:
    held = SizedExecutables(2)
    with build(partition_whole(BindDims(("rows=1", "cols=1"))(PROGRAM), REFERENCE)) as executable:
        assert [held.add((size,), executable) for size in (1, 2)] == [None, None]
        assert held.find((1,)) is executable
        assert held.add((3,), executable) == (2,)
        assert held.find((2,)) is None


# The process.


def test_a_variant_is_saved_if_it_is_faster(
    artifact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gains = iter((1.01, 1.5, 3.0, 2.0))
    monkeypatch.setattr(make_variant, "_gain", lambda *_: next(gains))
    out = tmp_path / "v"
    sizes = {"rows": 2, "cols": 4}
    reason = make_variant.make_variant(artifact, sizes, out, [NATIVE])
    assert reason == "native is 1.01 times as fast as the program for any size"
    assert not out.exists()
    targets = [NATIVE, Target("cpu -toolchain=onnxruntime"), REFERENCE]
    assert make_variant.make_variant(artifact, sizes, out, targets) == ""
    with load(out) as variant:
        assert {kernel.source.toolchain for kernel in variant.kernels} == {"onnxruntime"}
        x, b = inputs_of(2)
        np.testing.assert_allclose(variant(x, b), x * b, rtol=1e-6)


def test_a_variant_that_is_wrong_is_not_saved(
    artifact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = Gate.known
    off = classmethod(lambda _, mod, outputs: known(mod, [output + 1 for output in outputs]))
    monkeypatch.setattr(Gate, "known", off)
    reason = make_variant.make_variant(artifact, {"rows": 2, "cols": 4}, tmp_path / "v", [NATIVE])
    assert reason.startswith("native: ")
    assert not (tmp_path / "v").exists()


@pytest.mark.processes
def test_a_real_process(artifact: Path) -> None:
    with specialize_lazily(artifact, [NATIVE, "cpu -toolchain=reference -threads=1"], calls=2) as lazy:
        for _ in range(2):
            assert factor(lazy, 2) == 1.0
        lazy.wait()
        assert list(lazy.outcomes) == ["cols=4, rows=2"]
        assert factor(lazy, 2) == 1.0


@pytest.mark.processes
def test_a_process_that_fails(artifact: Path, tmp_path: Path) -> None:
    moved = tmp_path / "m.intarsia"
    moved.write_bytes(artifact.read_bytes())
    with specialize_lazily(moved, calls=1) as lazy:
        moved.unlink()
        factor(lazy, 2)
        lazy.wait()
        (reason,) = lazy.outcomes.values()
        assert "m.intarsia" in reason
