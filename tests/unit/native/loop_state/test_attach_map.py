from intarsia.native.loop_state import AttachMap


def test_both_views_agree() -> None:
    places = AttachMap().attach(5, 7, 1).attach(3, 7, 1).attach(4, 7, 0)
    assert places.positions == {5: (7, 1), 3: (7, 1), 4: (7, 0)}
    assert places.attached == {(7, 1): (3, 5), (7, 0): (4,)}
    moved = places.attach(5, 6, 2)
    assert moved.attached == {(7, 1): (3,), (7, 0): (4,), (6, 2): (5,)}
    assert places.detach(3).attached == {(7, 1): (5,), (7, 0): (4,)}
    assert places.detach(1) is places


def test_loops_move_all_at_once() -> None:
    places = AttachMap().attach(3, 7, 0).attach(4, 7, 1).attach(5, 8, 0)
    swapped = places.with_loops_moved(7, lambda loop: 1 - loop)
    assert swapped.positions == {3: (7, 1), 4: (7, 0), 5: (8, 0)}
    assert places.with_loops_moved(9, lambda loop: loop + 1) is places


def test_stages_shift() -> None:
    places = AttachMap().attach(3, 7, 0).attach(5, 4, 2)
    assert places.with_stages_shifted(4).positions == {3: (8, 0), 6: (5, 2)}
    assert places.with_stages_shifted(5, 2).positions == {3: (9, 0), 7: (4, 2)}
    assert places == AttachMap({5: (4, 2), 3: (7, 0)})
