"""Algorithms of convolutions as decisions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.emulated_cpus import CPUS
from tests.replayed_traces import replayed_digest
from tests.tuning_passes import CostTable

from intarsia.build import build
from intarsia.ir import Constant, Expr, Function, IRModule, TensorType, Var, structural_digest
from intarsia.native.machine.isa import Isa
from intarsia.op import call
from intarsia.passes import PartitionWhole
from intarsia.support.errors import UsageError
from intarsia.target.machine_families import family_model
from intarsia.tune import Trace, TuningContext
from intarsia.tune.passes import TuneConvolutions
from intarsia.tune.passes.tune_convolutions import convolution_by
from intarsia.tune.strategy import Exhaustive
from intarsia.tune.target_options import marked_functions

NATIVE = "cpu -toolchain=native"


def weight(made: int, read: int, taps: int = 3) -> Constant:
    generator = np.random.default_rng(made * read)
    return Constant((generator.standard_normal((made, read, taps, taps)) / (taps * read**0.5)).astype("f4"))


def program() -> IRModule:
    """Two convolutions of one shape, a larger one behind a smaller image, and one of other windows."""
    x = Var("x", checked_type=TensorType.of(np.zeros((1, 32, 20, 20), np.float32)))
    found: Expr = x
    for _ in range(2):
        found = call("Relu", call("Conv", found, weight(32, 32), pads=(1, 1, 1, 1)))
    found = call("MaxPool", found, kernel_shape=(2, 2), strides=(2, 2))
    found = call("Conv", found, weight(64, 32), pads=(1, 1, 1, 1))
    return IRModule.from_expr(Function((x,), call("Conv", found, weight(64, 64, 1))))


LARGE, SMALL = "32x20x20x32", "32x10x10x64"


def texts(mod: IRModule) -> list[str]:
    return [each.target.option("convolutions", "auto") for each in marked_functions(mod)]


def context(best: str) -> TuningContext:
    """A program costs least with one text as the option."""
    return TuningContext(CostTable(lambda mod: 1.0 if best in texts(mod) else 2.0))


@pytest.fixture
def usual_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let estimates be those of one CPU without a last-level cache, whatever this machine is."""
    model = family_model("znver3")
    cpu = replace(CPUS["znver3"], machine=replace(model, caches=replace(model.caches, third=0)), cores=2)
    monkeypatch.setattr(Isa, "host", classmethod(lambda _: cpu))


@pytest.mark.usefixtures("usual_machine")
def test_a_decision_for_each_shape_with_most_products_first() -> None:
    mod = PartitionWhole(NATIVE)(program())
    found = TuneConvolutions().instructions(Trace(mod), context(""))
    assert [each.name for each in found] == [f"convolutions {LARGE}", f"convolutions {SMALL}"]
    assert [each.decisions for each in found] == [
        ("as it is", "winograd_2"),
        ("as it is", "direct", "winograd_4"),
    ]


@pytest.mark.usefixtures("usual_machine")
def test_what_is_estimated_to_be_hopeless_is_not_tried() -> None:
    x = Var("x", checked_type=TensorType.of(np.zeros((1, 64, 56, 56), np.float32)))
    mod = IRModule.from_expr(Function((x,), call("Conv", x, weight(64, 64), pads=(1, 1, 1, 1))))
    (found,) = TuneConvolutions(target=NATIVE).instructions(Trace(mod), context(""))
    assert found.decisions == ("as it is",), "others take more than one and a half times as long"


def given() -> IRModule:
    """The program given to native."""
    return PartitionWhole(NATIVE)(program())


@pytest.mark.slow
@pytest.mark.usefixtures("usual_machine")
def test_the_best_is_found_and_replayed() -> None:
    ctx = context(f"auto,{LARGE}=winograd_2")
    best = TuneConvolutions().tune(Trace(given()), ctx)
    assert texts(best.out_mod) == [f"auto,{LARGE}=winograd_2"]
    assert replayed_digest(best, __name__, "given") == structural_digest(best.out_mod)


@pytest.mark.usefixtures("usual_machine")
def test_a_program_that_gives_nothing_to_anybody_is_one_for_the_target() -> None:
    mod, ctx = program(), context(f"auto,{SMALL}=winograd_4,{LARGE}=winograd_2")
    found = TuneConvolutions(target=NATIVE, strategy=Exhaustive())(mod, ctx)
    assert texts(found) == [f"auto,{SMALL}=winograd_4,{LARGE}=winograd_2"]
    assert TuneConvolutions(target=NATIVE)(mod, context("nothing")) is mod, "it is not even marked"


def test_decisions_join_those_that_were_made() -> None:
    mod = PartitionWhole(f"{NATIVE} -convolutions=direct,{SMALL}=winograd_2")(program())
    mod = convolution_by(mod, shape=LARGE, algorithm="winograd_4")
    assert texts(mod) == [f"direct,{SMALL}=winograd_2,{LARGE}=winograd_4"]


def test_programs_that_give_nothing_to_native_are_left_alone() -> None:
    mod = PartitionWhole("cpu -toolchain=reference")(program())
    (found,) = TuneConvolutions().instructions(Trace(mod), context(""))
    assert found.decisions == ("as it is",)
    (found,) = TuneConvolutions(target="cpu -toolchain=reference").instructions(Trace(program()), context(""))
    assert found.decisions == ("as it is",)


def test_unknown_algorithms_are_refused() -> None:
    with pytest.raises(UsageError, match="'fft' is no algorithm of convolutions"):
        TuneConvolutions(algorithms=("fft",))


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["direct", "winograd_2", "winograd_6"])
def test_programs_compute_the_same(algorithm: str) -> None:
    mod = convolution_by(program(), shape=LARGE, algorithm=algorithm, target=NATIVE)
    data = np.random.default_rng(0).standard_normal((1, 32, 20, 20)).astype(np.float32)
    with build(mod) as found, build(program()) as expected:
        (left,), (right,) = found.run_flat(data), expected.run_flat(data)
    np.testing.assert_allclose(np.asarray(left), np.asarray(right), atol=1e-4)
