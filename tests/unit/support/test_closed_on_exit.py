import pytest

from intarsia.support.closed_on_exit import ClosedOnExit


class Door(ClosedOnExit):
    is_open = True

    def close(self) -> None:
        self.is_open = False


def test_the_block_has_the_object_which_is_closed_afterwards() -> None:
    with Door() as door:
        assert door.is_open
    assert not door.is_open


def test_is_closed_after_an_error_which_goes_on() -> None:
    door = Door()
    with pytest.raises(ValueError, match="storm"), door:
        raise ValueError("storm")
    assert not door.is_open
