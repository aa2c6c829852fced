"""Products of a library as decisions."""

from __future__ import annotations

import ctypes
from types import MappingProxyType

import numpy as np
import pytest
from tests.replayed_traces import replayed_digest
from tests.tuning_passes import CostTable

from intarsia.ir import Constant, DType, Expr, Function, IRModule, TensorType, Var, structural_digest
from intarsia.op import call
from intarsia.passes import PartitionWhole
from intarsia.runtime.availability import Unavailable
from intarsia.support.errors import UsageError
from intarsia.toolchain.native import libraries
from intarsia.tune import Trace, TuningContext
from intarsia.tune.passes import TuneLibraries
from intarsia.tune.passes.tune_libraries import product_by
from intarsia.tune.target_options import marked_functions

NATIVE = "cpu -toolchain=native"
LARGE, SMALL = "64x256x128", "64x64x256"


def program() -> IRModule:
    """Two products of one shape, a larger one, and one that is too small to matter."""
    value: Expr = Var("x", checked_type=TensorType((64, 64), DType.FLOAT32))
    x = value
    assert isinstance(x, Var)
    for rows, columns in ((64, 256), (256, 128), (128, 256), (256, 128), (128, 1)):
        weights = np.full((rows, columns), 0.01, np.float32)
        value = call("MatMul", value, Constant(weights))
    return IRModule.from_expr(Function((x,), value))


def given() -> IRModule:
    """The program given to native."""
    return PartitionWhole(NATIVE)(program())


def context(best: str) -> TuningContext:
    """A program costs least with one value of the option."""
    return TuningContext(CostTable(lambda mod: 1.0 if best in texts(mod) else 2.0))


def texts(mod: IRModule) -> list[str]:
    return [str(each.target.option("libs")) for each in marked_functions(mod)]


@pytest.fixture
def _library(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that counts as installed; nothing is compiled here."""
    loaded = libraries.LoadedLibrary(MappingProxyType({}), ctypes.CDLL(None))
    monkeypatch.setattr(libraries, "_loaded", lambda _: loaded)


@pytest.mark.usefixtures("_library")
def test_a_decision_for_each_shape_that_matters_with_most_work_first() -> None:
    found = TuneLibraries().instructions(Trace(given()), context(""))
    assert [each.name for each in found] == [f"products {LARGE}", "products 64x128x256", f"products {SMALL}"]
    assert {each.decisions for each in found} == {("as it is", "openblas")}
    (first,) = TuneLibraries(least_share=0.5).instructions(Trace(given()), context(""))
    assert first.name == f"products {LARGE}"


@pytest.mark.processes
@pytest.mark.usefixtures("_library")
def test_the_best_is_found_and_replayed() -> None:
    best = TuneLibraries().tune(Trace(given()), context(f"openblas:{LARGE}"))
    assert texts(best.out_mod) == [f"openblas:{LARGE}"]
    assert replayed_digest(best, __name__, "given") == structural_digest(best.out_mod)


@pytest.mark.usefixtures("_library")
def test_shapes_add_up_and_all_products_stay_all() -> None:
    both = product_by(product_by(given(), LARGE, "openblas"), SMALL, "openblas")
    assert texts(both) == [f"openblas:{SMALL},{LARGE}"]
    everything = PartitionWhole(f"{NATIVE} -libs=openblas")(program())
    assert product_by(everything, LARGE, "openblas") is everything


@pytest.mark.usefixtures("_library")
def test_a_program_without_a_toolchain_is_given_to_the_target() -> None:
    best = TuneLibraries(target=NATIVE).tune(Trace(program()), context(f"openblas:{LARGE}"))
    assert texts(best.out_mod) == [f"openblas:{LARGE}"]
    others = TuneLibraries(target="cpu -toolchain=openvino").instructions(Trace(program()), context(""))
    assert [each.decisions for each in others] == [("as it is",)]


def test_there_is_nothing_to_decide_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "_loaded", lambda _: Unavailable("not installed"))
    (found,) = TuneLibraries().instructions(Trace(given()), context(""))
    assert found.decisions == ("as it is",)


def test_options_are_checked() -> None:
    with pytest.raises(UsageError, match="expected 0 to 1"):
        TuneLibraries(least_share=2)
    with pytest.raises(UsageError, match="is no shape of a matrix product"):
        product_by(given(), "64x", "openblas")
