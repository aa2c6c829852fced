"""What reports of artifacts and databases are made from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.explanations import RUN
from tests.ir_programs import relu, var

from intarsia.build import build
from intarsia.driver.report_sources import source_of_artifact, source_of_database
from intarsia.ir import Function, IRModule
from intarsia.measure.candidate_kind import WHOLE, instantiate
from intarsia.measure.database import Database
from intarsia.measure.database.run_record import RunRecord
from intarsia.runtime.artifact_load import load
from intarsia.runtime.executable import Executable
from intarsia.runtime.self_test import SelfTest
from intarsia.support.errors import MissingToolchainError, UsageError
from intarsia.target.reference import REFERENCE_TARGET

X = np.ones((2, 3), np.float32)


def artifact(folder: Path, *, explained: bool = True, tested: bool = True) -> Path:
    x = var()
    module = IRModule.from_expr(Function((x,), relu(x)))
    with build(instantiate(module, REFERENCE_TARGET, WHOLE)) as executable:
        executable.save(
            folder / "m.intarsia",
            self_test=SelfTest((X,), (X,)) if tested else None,
            explanation=RUN.to_text() if explained else None,
        )
    return folder / "m.intarsia"


def test_an_artifact_is_profiled_on_the_inputs_of_its_self_test(tmp_path: Path) -> None:
    source = source_of_artifact(artifact(tmp_path), load)
    assert source.explanation == RUN
    assert source.profile is not None
    assert source.profile.end_to_end_seconds > 0
    assert source.profile_gap == ""
    assert source.host["architecture"]


def test_an_artifact_that_does_not_run_here(tmp_path: Path) -> None:
    def refuse(path: Path) -> Executable:
        raise MissingToolchainError(f"{path.name} needs zenith")

    source = source_of_artifact(artifact(tmp_path), refuse)
    assert source.profile is None
    assert source.profile_gap == (
        "The artifact cannot be run here, so that there is no profile: m.intarsia needs zenith."
    )
    assert source.host["architecture"]  # the manifest has it


def test_an_artifact_without_inputs(tmp_path: Path) -> None:
    source = source_of_artifact(artifact(tmp_path, tested=False), load)
    assert (source.profile, source.profile_gap) == (None, "The artifact has no inputs for a profile.")


def test_an_artifact_without_an_explanation(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="contains no explanation"):
        source_of_artifact(artifact(tmp_path, explained=False), None)


def test_a_database_without_a_run_that_this_version_reads(tmp_path: Path) -> None:
    with Database.open(tmp_path / "m.db") as database:
        with pytest.raises(UsageError) as nothing:
            source_of_database(database, "m.db")
        database.keep_run(RunRecord("old", "workload", "host", 1.0, '{"version":0}'))
        with pytest.raises(UsageError) as unread:
            source_of_database(database, "m.db", "tiny")
    assert str(nothing.value) == (
        "the database m.db has no finished run\nhelp: intarsia tune MODEL stores its run"
    )
    assert str(unread.value).startswith("the database m.db has no finished run of 'tiny'")
