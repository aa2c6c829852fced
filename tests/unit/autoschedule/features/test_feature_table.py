"""The table of features, here and in the documentation."""

from pathlib import Path

from intarsia.autoschedule.features import feature_names, feature_table
from intarsia.autoschedule.features.feature_table import MEANINGS, general_name

NAMES = feature_names(with_machine=True)
PAGE = Path(__file__).parents[4] / "docs" / "schedule_features.md"


def test_every_feature_has_a_meaning_and_every_meaning_a_feature() -> None:
    assert {general_name(name) for name in NAMES} == set(MEANINGS)


def test_buffers_and_points_are_one_row() -> None:
    rows = feature_table(NAMES).splitlines()
    assert len(rows) == 2 + len(MEANINGS)
    assert "| 74, 92, 110, 128, 146 | `B0.stride .. B4.stride` |" in feature_table(NAMES)


def test_the_documentation_has_the_table() -> None:
    """Where it fails: put `feature_table(feature_names(with_machine=True))` into the page."""
    assert feature_table(NAMES) in PAGE.read_text()
