"""Metrics and tolerances on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from intarsia.cli.arguments.metric import parse_metric, parse_tolerance
from intarsia.support.errors import InputError, UsageError


def test_a_function_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "metrics.py"
    file.write_text("LEAST = 2\ndef largest(outputs, expected, labels):\n    return outputs[0] + LEAST\n")
    assert parse_metric(f"{file}:largest")([3], [], None) == 5
    with pytest.raises(UsageError, match="has no function 'smallest'"):
        parse_metric(f"{file}:smallest")
    with pytest.raises(UsageError, match="has no function 'LEAST'"):
        parse_metric(f"{file}:LEAST")
    with pytest.raises(UsageError, match="names no function of the file"):
        parse_metric(str(file))
    with pytest.raises(InputError, match=r"^there is no file "):
        parse_metric(f"{tmp_path / 'other.py'}:largest")
    file.write_text("import no_such_module_at_all\n")
    with pytest.raises(InputError, match=r"metrics\.py failed: ModuleNotFoundError: No module named"):
        parse_metric(f"{file}:largest")


def test_names_stay_as_they_are() -> None:
    assert parse_metric("cosine") == "cosine"


def test_a_tolerance_is_a_fraction_or_a_ratio() -> None:
    assert parse_tolerance(None) is None
    assert parse_tolerance("0.05") == 0.05
    assert parse_tolerance("20dB") == pytest.approx(0.1)
    assert parse_tolerance("26 db") == pytest.approx(0.0501, rel=1e-3)
    for text in ("many", "5%", "dB"):
        with pytest.raises(UsageError, match="is no number"):
            parse_tolerance(text)
