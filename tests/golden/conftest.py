"""Comparing whole texts with files."""

from collections.abc import Callable
from pathlib import Path

import pytest

from intarsia.support.files import write_atomically


@pytest.fixture
def check_golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """A check that a text equals the file of that name beside the tests; `--update-golden` rewrites it."""

    def check(name: str, text: str) -> None:
        path = Path(__file__).parent / name
        if request.config.getoption("--update-golden"):
            with write_atomically(path) as part:
                part.write_text(text, encoding="utf-8")
        assert path.exists(), f"{path.name} is missing; make it with: pytest tests/golden --update-golden"
        assert text == path.read_text(encoding="utf-8")

    return check
