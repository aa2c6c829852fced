"""Calibration inputs from files: forms of arrays, folders, labels, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from tests.quantised_programs import residual_network

from intarsia.support.errors import InputError
from intarsia.tune.quantise.calibration_inputs import calibration_of, read_calibration

MAIN = residual_network()["main"]
NAME = MAIN.params[0].name
SHAPE = (2, 4, 6, 6)


@pytest.mark.parametrize(("shape", "count"), [(SHAPE, 1), ((3, *SHAPE), 3), ((8, *SHAPE[1:]), 4)])
def test_arrays_are_cut_into_input_sets(shape: tuple[int, ...], count: int) -> None:
    array = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    read = calibration_of({NAME: array}, MAIN)
    assert len(read.inputs) == count
    assert all(item[NAME].shape == SHAPE and item[NAME].dtype == np.float32 for item in read.inputs)
    np.testing.assert_array_equal(
        np.concatenate([item[NAME] for item in read.inputs]).reshape(-1), array.reshape(-1)
    )


def test_a_folder_is_read_in_the_order_of_names(tmp_path: Path) -> None:
    for number in (2, 1):
        images = np.full((2, *SHAPE), number, np.float32)
        np.savez(tmp_path / f"{number}.npz", x=images, labels=np.full((2, 2), number))
    read = read_calibration(tmp_path, MAIN)
    assert [item[NAME].flat[0] for item in read.inputs] == [1, 1, 2, 2]
    assert [label.tolist() for label in read.labels] == [[1, 1], [1, 1], [2, 2], [2, 2]]
    first, second = read.split()
    assert [item[NAME].flat[0] for item in first.inputs] == [1, 2]
    assert len(second.inputs) == len(second.labels) == 2


def test_a_file_of_one_array(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros(SHAPE, np.float32))
    assert len(read_calibration(tmp_path / "x.npy", MAIN).inputs) == 1


def test_one_input_set_is_used_for_both() -> None:
    read = calibration_of({NAME: np.zeros(SHAPE)}, MAIN)
    assert read.split() == (read, read)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, f'input "{NAME}" is missing (the arrays)'),
        ({NAME: np.zeros(SHAPE), "y": np.zeros(1)}, 'there is no input "y" (the arrays)'),
        (
            {NAME: np.zeros((2, 4, 6))},
            f'input "{NAME}" of the arrays has the shape (2, 4, 6), expected Tensor[(2, 4, 6, 6), float32]',
        ),
        (
            {NAME: np.zeros(SHAPE), "labels": np.zeros(2)},
            "the arrays has labels of float64 with 2 elements, expected integers for 1 input sets",
        ),
    ],
)
def test_what_does_not_fit(
    arrays: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float64]]], message: str
) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(message)}"):
        calibration_of(arrays, MAIN)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no .npz or .npy file"):
        read_calibration(tmp_path, MAIN)
    with pytest.raises(InputError, match="no such file or directory"):
        read_calibration(tmp_path / "none.npz", MAIN)
    (tmp_path / "bad.npz").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"bad.npz: it is damaged"):
        read_calibration(tmp_path / "bad.npz", MAIN)
