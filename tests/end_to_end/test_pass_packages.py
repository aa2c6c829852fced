"""Passes of packages that are installed beside Intarsia."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.end_to_end.command_line import environment, process
from tests.end_to_end.installed_packages import found_in, install_example, install_module

pytestmark = pytest.mark.processes

USE = """
import numpy as np

import intarsia as ia
from intarsia.ir import structural_equal
from intarsia.ir.parser import parse_module

infer = ia.get_pass("InferType")
fuse = ia.get_pass("FuseMish")
docs = type(fuse).__doc__.split("Before:")[1].split("After:")
before, after = (infer(parse_module(text)) for text in docs)
assert structural_equal(fuse(before), after), str(fuse(before))
assert fuse(after) is after

other_order = infer(parse_module("def @main(%x: Tensor[(2,), float32]) { Mul(Tanh(Softplus(%x)), %x) }"))
assert structural_equal(fuse(other_order), after)
two = "def @main(%x: Tensor[(2,), float32], %y: Tensor[(2,), float32]) { Mul(%x, Tanh(Softplus(%y))) }"
gate_of_another = infer(parse_module(two))
assert fuse(gate_of_another) is gate_of_another

x = np.array([-3.0, 0.5], np.float32)
mod = ia.load_pass_sequence("mish")(before)
np.testing.assert_allclose(ia.build(mod)(x), ia.build(before)(x), rtol=1e-6)
print(mod["main"].body.op.name)
"""


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_example("pass_package", tmp_path_factory.mktemp("example"))


def test_the_example_package_is_found_by_name(example: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", USE],
        cwd=example,
        env=environment(found_in(example)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("Mish\n", "")


def test_passes_lists_what_a_package_brings(example: Path, tmp_path: Path) -> None:
    plain = process("passes", "--json", cwd=tmp_path).document
    more = process("passes", "--json", cwd=tmp_path, env=found_in(example)).document
    names = [{item["name"] for item in document["passes"]} for document in (plain, more)]
    assert names[1] - names[0] == {"FuseMish"}
    assert "mish" not in plain["pipelines"]
    assert more["pipelines"]["mish"] == ["FuseMish"]
    assert more["broken_packages"] == []


def test_a_pipeline_of_a_package_runs_on_the_command_line(example: Path, tmp_path: Path) -> None:
    outcome = process("bisect", "zoo:mnist", "--pipeline", "mish", cwd=tmp_path, env=found_in(example))
    assert (outcome.code, outcome.err) == (0, "")
    assert [line.split()[:2] for line in outcome.out.splitlines()[1:3]] == [
        ["InferType", "unchanged"],
        ["FuseMish", "unchanged"],
    ]


def test_a_broken_package_is_named_and_takes_nothing_else_down(example: Path, tmp_path: Path) -> None:
    broken = install_module(tmp_path / "broken", "broken_passes", "raise RuntimeError('half installed')\n")
    env = found_in(broken, example)
    document = process("passes", "--json", cwd=tmp_path, env=env).document
    assert document["broken_packages"] == ["broken_passes: half installed"]
    assert {"FuseMish", "InferType"} <= {item["name"] for item in document["passes"]}
    shown = process("passes", cwd=tmp_path, env=env)
    assert shown.code == 0
    assert shown.out.splitlines()[-1] == "could not be loaded: broken_passes: half installed"


def test_an_unknown_name_says_which_packages_are_broken(tmp_path: Path) -> None:
    broken = install_module(tmp_path / "broken", "broken_passes", "raise RuntimeError('half installed')\n")
    for option, kind in (("--pass", "pass"), ("--pipeline", "pipeline")):
        outcome = process("bisect", "zoo:mnist", option, "Mine", cwd=tmp_path, env=found_in(broken))
        assert outcome.code == 2
        assert outcome.err.startswith(f"error: unknown {kind} 'Mine'")
        assert "could not be loaded: broken_passes: half installed" in outcome.err


def test_a_package_that_takes_a_name_of_ours_is_the_one_that_is_broken(tmp_path: Path) -> None:
    source = """
from intarsia.transform import ModulePass, register_pass

@register_pass
class InferType(ModulePass):
    def transform_module(self, mod, ctx):
        return mod
"""
    place = install_module(tmp_path / "taken", "a_taken_name", source)
    document = process("passes", "--json", cwd=tmp_path, env=found_in(place)).document
    assert document["broken_packages"] == ["a_taken_name: pass 'InferType' is already registered"]
