"""Folders of a user's data and caches."""

from pathlib import Path

import pytest

from intarsia.support.user_folders import cache_folder, data_folder


def test_variables_name_the_folders() -> None:
    environment = {"XDG_DATA_HOME": "/data", "XDG_CACHE_HOME": "/cache"}
    assert data_folder(environment) == Path("/data/intarsia")
    assert cache_folder(environment) == Path("/cache/intarsia")


@pytest.mark.parametrize("value", [None, "", "relative"])
def test_without_an_absolute_path_they_are_below_the_home(value: str | None) -> None:
    names = ("XDG_DATA_HOME", "XDG_CACHE_HOME")
    environment = {} if value is None else dict.fromkeys(names, value)
    assert data_folder(environment) == Path.home() / ".local/share/intarsia"
    assert cache_folder(environment) == Path.home() / ".cache/intarsia"
