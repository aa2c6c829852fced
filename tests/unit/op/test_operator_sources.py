"""Sources of registered operators: modules for workers, digests for records."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.onnx_models import model_of
from tests.registered_operators import gated_module, gated_registered

import intarsia as ia
from intarsia.frontend.onnx import from_onnx
from intarsia.measure.measure_input import Workload
from intarsia.op.operator_definition import holding_definition
from intarsia.op.operator_sources import (
    check_workers_find,
    operator_digests,
    registering_modules,
    used_definitions,
)
from intarsia.op.register_operator import define_operator
from intarsia.support.errors import UsageError


def function_of(source: str, name: str = "__main__", path: str = "<cell>") -> Any:
    """Return the function `f` of source text, as if it stood in a module."""
    module = ModuleType(name)
    exec(compile(source, path, "exec"), module.__dict__)
    return module.__dict__["f"]


def digests(reference: Any) -> tuple[str, ...]:
    with gated_registered(reference=reference):
        return operator_digests(gated_module())


def test_definitions_of_a_program() -> None:
    with gated_registered():
        assert [str(item) for item in used_definitions(gated_module())] == ["acme::Gated"]
        assert used_definitions(from_onnx(model_of("g (float[2] x) => (float[2] y) { y = Neg(x) }"))) == ()


def test_workers_import_the_modules_of_the_functions() -> None:
    with gated_registered():
        assert "tests.registered_operators" in registering_modules()
        check_workers_find(gated_module())
    assert "tests.registered_operators" not in registering_modules()


def test_an_operator_of_the_main_script_is_refused_by_tune() -> None:
    reference = function_of("def f(x, gate, up, *, alpha=1.0): return x @ gate")
    with gated_registered(reference=reference):
        assert "__main__" not in registering_modules()
        with pytest.raises(UsageError) as caught:
            ia.tune(gated_module(), budget="1s")
    assert caught.value.problem == (
        "operator 'acme::Gated' is registered in the main script, which worker processes do not run"
    )
    assert caught.value.help == "define its functions in a module, and import that from the script"


def test_a_digest_follows_the_source(tmp_path: Path) -> None:
    text = "def f(x, gate, up, *, alpha=1.0): return {} * (x @ gate)"
    first, same, other = (digests(function_of(text.format(factor))) for factor in (1, 1, 2))
    assert first == same != other
    path = tmp_path / "operators.py"
    path.write_text(text.format(1))
    reference = function_of(text.format(1), path=str(path))
    before = digests(reference)
    path.write_text(f"{text.format(1)}\nFACTOR = 2\n")
    assert digests(reference) != before


def test_records_of_measurements_depend_on_the_source() -> None:
    text = "def f(x, gate, up, *, alpha=1.0): return {} * (x @ gate)"
    workloads = []
    for factor in (1, 2):
        with gated_registered(reference=function_of(text.format(factor))):
            workloads.append(Workload(gated_module()).digest)
    assert len(set(workloads)) == 2
    with holding_definition("acme::Other", define_operator("acme::Other", lambda x: x, None, lambda x: x)):
        plain = from_onnx(model_of("g (float[2] x) => (float[2] y) { y = Neg(x) }"))
        with_other = Workload(plain).digest
    assert Workload(plain).digest == with_other
