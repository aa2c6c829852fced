"""Global rewrites that a toolchain would like to have done first."""

from __future__ import annotations

import pytest
from tests.collage_programs import assert_program, program

from intarsia.collage.candidates.optimize_for import (
    holding_optimize_for,
    optimize_for,
    preamble,
    register_optimize_for,
)
from intarsia.op.operator_predicate import holding_operator_predicate
from intarsia.passes import SimplifyExpr, SimplifyInference
from intarsia.support.errors import UsageError
from intarsia.transform import Sequential

MOD = program("def @main(%x: T) { Identity(Neg(%x)) }")


def test_most_toolchains_have_no_wishes() -> None:
    assert preamble("openvino") is None
    assert optimize_for(MOD, "openvino") is MOD


def test_a_preamble_is_run() -> None:
    steps = Sequential([SimplifyInference()])
    with holding_optimize_for("acme", steps):
        assert preamble("acme") is steps
        assert_program(optimize_for(MOD, "acme"), "def @main(%x: T) { Neg(%x) }")
        with pytest.raises(UsageError, match="'acme' is already registered"):
            register_optimize_for("acme", SimplifyExpr())


def test_unknown_toolchains() -> None:
    for ask in (preamble, lambda name: optimize_for(MOD, name)):
        with pytest.raises(UsageError, match="unknown toolchain 'opnvino'"):
            ask("opnvino")
    with holding_operator_predicate("acme", lambda _: True):
        assert optimize_for(MOD, "acme") is MOD
