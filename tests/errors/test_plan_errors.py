"""Plans that cannot be used: exact messages; the file stays as it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.collage_programs import program
from tests.faulty_toolchains import Missing

from intarsia.collage.placement.plan import Plan, PlanError
from intarsia.driver.plans import read_plan, refuse_choices
from intarsia.driver.tune import tune
from intarsia.measure.candidate_kind import WHOLE
from intarsia.runtime.kernel import TOOLCHAINS
from intarsia.support.errors import IntarsiaError, MissingToolchainError, OutputError, UsageError
from intarsia.target import Target
from intarsia.toolchain.this_host import this_host

MODEL = program("def @main(%x: T) { Relu(%x) }")
OTHER = "\nhelp: give a file that intarsia tune --plan wrote, or the name of a new one"
LOST = "\nhelp: give the plan of this model, or the name of a new file to make one"


def a_plan(toolchain: str = "onnxruntime") -> Plan:
    target = Target.for_toolchain(toolchain)
    return Plan.of_candidate(MODEL, WHOLE, target, model="net", host=this_host())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "net.plan"
    a_plan().write(place)
    return place


def message(path: Path, error: type[IntarsiaError] = PlanError) -> str:
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(error) as caught:
        read_plan(path, MODEL, this_host(), None, must_exist=True)
    assert type(caught.value) is error
    assert caught.value.exit_code == 2
    assert (path.read_bytes() if path.is_file() else None) == before
    return str(caught.value)


def changed(path: Path, **values: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_no_plan(tmp_path: Path) -> None:
    path = tmp_path / "no.plan"
    assert message(path) == f"there is no plan {path}{OTHER}"
    assert read_plan(path, MODEL, this_host(), None) is None
    assert read_plan(None, MODEL, this_host(), None) is None


def test_a_folder(tmp_path: Path) -> None:
    assert message(tmp_path) == f"cannot read the plan {tmp_path}: is a directory{OTHER}"


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_a_truncated_file(path: Path, share: float) -> None:
    text = path.read_text()
    path.write_text(text[: int(len(text) * share)])
    lines = path.read_text().count("\n") + 1
    problem = message(path).removesuffix(OTHER)
    found = int(problem.rpartition(" ")[2])
    assert problem == f"{path} is no plan, or is cut off: it is no JSON at line {found}"
    assert found in {lines, lines - 1}


def test_an_empty_file(path: Path) -> None:
    path.write_text("")
    assert message(path) == f"{path} is no plan, or is cut off: it is no JSON at line 1{OTHER}"


def test_bytes(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00")
    assert message(path) == f"{path} is no plan: it is no text{OTHER}"


@pytest.mark.parametrize("text", ["[]", "3", "{}", '{"format": "intarsia-artifact", "version": 1}'])
def test_foreign_json(path: Path, text: str) -> None:
    path.write_text(text)
    assert message(path) == f"{path} is no plan{OTHER}"


def test_nested_deeply(path: Path) -> None:
    path.write_text("[" * 100_000)
    assert message(path) == f"{path} is no plan, or is cut off: it is no JSON{OTHER}"


def test_another_version(path: Path) -> None:
    changed(path, version=3, intarsia="7.0")
    assert message(path) == (
        f"the plan {path} has version 3, expected 2: Intarsia 7.0 wrote it, this is 0.1.0"
        "\nhelp: tune again with the name of a new file"
    )


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"host": 3}, "it.host is 3, expected an object"),
        ({"measured_seconds": "fast"}, "it.measured_seconds is 'fast', expected a number"),
        ({"whole": None}, "it has to have either partitions or a target for the whole"),
        ({"partitions": 3}, "its partitions are no list"),
        ({"decisions": {}}, "its decisions are no list"),
        ({"decisions": [{"decision": "Off"}]}, "a decision is malformed: KeyError('choice')"),
    ],
)
def test_damaged_fields(path: Path, values: dict[str, Any], problem: str) -> None:
    changed(path, **values)
    assert message(path) == f"the plan {path} is damaged: {problem}{OTHER}"


def test_damaged_partitions(path: Path) -> None:
    good = {"function": "main", "target": "cpu -toolchain=onnxruntime", "label": "Relu", "composites": []}
    changed(path, whole=None, partitions=[{**good, "nodes": "1-2"}])
    assert message(path) == (
        f"the plan {path} is damaged: a partition of a plan is malformed: ValueError: "
        f"'1-2' is no range of nodes{OTHER}"
    )
    changed(path, partitions=[{**good, "nodes": "7"}])
    assert message(path).startswith(f"the plan {path} is damaged: the partition 'Relu' has node 7")
    changed(path, partitions=[{**good, "nodes": "1", "target": "cpu -"}])
    assert message(path).startswith(f"the plan {path} is damaged: ")


def test_another_program(path: Path) -> None:
    with pytest.raises(PlanError) as caught:
        read_plan(path, program("def @main(%x: T) { Exp(%x) }"), this_host(), None)
    assert str(caught.value) == (
        f"the plan {path} is for another program (net): "
        f"it has Exp 0 times, the model 1; Relu 1 times, the model 0{LOST}"
    )


def test_a_missing_toolchain(path: Path) -> None:
    a_plan("missing").write(path)
    with TOOLCHAINS.holding("missing", Missing):
        assert message(path, MissingToolchainError) == (
            f"the plan {path} cannot be carried out here: toolchain 'missing' is not usable here: "
            "it is not installed\nhelp: pip install 'missing'"
        )
    assert message(path, MissingToolchainError) == (
        f"the plan {path} cannot be carried out here: unknown toolchain 'missing'"
        "\nhelp: known: native, onnxruntime, openvino, reference, tensorrt, torch"
    )


def test_another_machine_is_a_note(path: Path) -> None:
    changed(path, host={"digest": "0", "cpu": "Z80"})
    notes: list[str] = []
    assert read_plan(path, MODEL, this_host(), notes.append) is not None
    assert notes == [f"the plan {path} was made on another machine, or with other toolchains (Z80)"]


def usage(function: Callable[[], object]) -> str:
    with pytest.raises(UsageError) as caught:
        function()
    return str(caught.value)


def test_a_locked_run_leaves_nothing_to_choose(path: Path) -> None:
    assert usage(lambda: refuse_choices(None)) == (
        "a locked run needs a plan\nhelp: pass the file of a plan: --plan FILE"
    )
    assert usage(lambda: tune(MODEL, locked=True)) == (
        "a locked run needs a plan\nhelp: pass the file of a plan: --plan FILE"
    )
    assert usage(lambda: tune(MODEL, plan=path, locked=True, targets=["cpu -toolchain=openvino"])) == (
        "a locked run takes no targets: the plan fixes it"
        "\nhelp: drop that option, or run without --locked to search again"
    )


def test_nothing_is_measured_for_a_plan_that_cannot_be_used(path: Path) -> None:
    path.write_text("{}")
    assert usage(lambda: tune(MODEL, plan=path)) == f"{path} is no plan{OTHER}"


def test_a_plan_that_cannot_be_written(tmp_path: Path) -> None:
    place = tmp_path / "missing" / "net.plan"
    with pytest.raises(OutputError) as caught:
        a_plan().write(place)
    assert str(caught.value) == (
        f"cannot write {place}: no such file or directory\nhelp: create the folder first"
    )
