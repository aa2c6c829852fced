"""Where to cut a sequence of operators, and which pieces to look at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from intarsia.collage.rules.block_item import BlockItem


def live_values(run: Sequence[BlockItem]) -> list[int]:
    """For each position between two items, how many values made before it are used after it.

    Position i is before item i; so there is one more than items, and the first and last are 0. Values from
    outside of the run, and what only something outside uses, do not count. Linear.
    """
    position_of = {item.index: position for position, item in enumerate(run)}
    last = list(range(len(run)))
    for position, item in enumerate(run):
        for one in item.needs:
            if one in position_of:
                last[position_of[one]] = position
    change = [0] * (len(run) + 2)
    for made, used in enumerate(last):
        change[made + 1] += 1
        change[used + 1] -= 1
    live, live_after = 0, []
    for step in change[: len(run) + 1]:
        live += step
        live_after.append(live)
    return live_after


def cut_points(run: Sequence[BlockItem], max_live: int, max_cuts: int) -> tuple[int, ...]:
    """Positions at which at most `max_live` values are live, ascending; the two ends are always among them.

    Of more than `max_cuts`, the best spread ones are kept: the run is split into so many parts of equal
    numbers of items, and each keeps its position with the fewest live values, the nearest to its middle
    where there are several. Linear.
    """
    end, live = len(run), live_values(run)
    points = [position for position in range(1, end) if live[position] <= max_live]
    if len(points) > max_cuts:
        width = end / max_cuts
        best: dict[int, tuple[tuple[float, float], int]] = {}
        for position in points:
            part = min(int(position / width), max_cuts - 1)
            rank = (live[position], abs(position - (part + 0.5) * width))
            if part not in best or rank < best[part][0]:
                best[part] = rank, position
        points = [position for _, position in best.values()]
    return (0, *points, end)


def spans(cuts: Sequence[int], max_spans: int) -> Iterator[tuple[int, int]]:
    """Pairs of cut points, begin before end, the longest first.

    All pairs, if these are at most `max_spans`. Otherwise the whole, and lengths of 1, 2, 4, 8 ... cuts, each
    begun at every half of its length: less than 4 times the number of cuts, and every interval between cuts
    is made of few of them.
    """
    count = len(cuts) - 1
    if count * (count + 1) // 2 <= max_spans:
        for length in range(count, 0, -1):
            for begin in range(count - length + 1):
                yield cuts[begin], cuts[begin + length]
        return
    yield cuts[0], cuts[-1]
    length = 1 << (count.bit_length() - 1)
    while length:
        for begin in range(0, count - length + 1, max(1, length // 2)):
            yield cuts[begin], cuts[begin + length]
        length //= 2
