from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from intarsia.cli.commands.run import save_npz
from intarsia.support.errors import OutputError


def test_any_name_and_type_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "out.data"
    values: dict[str, NDArray[Any]] = {
        "file": np.arange(3),
        "a/b:0": np.ones((2, 2), np.float16),
        "text": np.array(["ä", "longer"], object),
        "scalar": np.array(1.5),
    }
    assert save_npz(path, values) == path.stat().st_size
    with np.load(path, allow_pickle=False) as found:
        assert sorted(found.files) == sorted(values)
        for name, value in values.items():
            assert found[name].tolist() == value.tolist()
            assert found[name].dtype == value.dtype or name == "text"


def test_sequences_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(OutputError) as caught:
        save_npz(tmp_path / "o.npz", {"y": np.zeros(1), "s": [np.zeros(1)]})
    assert str(caught.value) == (
        f"cannot write {tmp_path / 'o.npz'}: output 's' is not an array, and .npz files contain arrays only"
    )
    assert not list(tmp_path.iterdir())
