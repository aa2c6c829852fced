"""Measure programs in pools, interleaved, and choose the best one.

Every choice is measured at saturation, in rounds, so that a disturbance hits all of them. Those that come
near the best are then measured at one common arrival rate, where their latencies compare.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from intarsia.driver.stream_search.objective import LoadOptions, Objective
from intarsia.driver.stream_search.stored_loads import StoredLoads
from intarsia.driver.stream_search.stream_record import StreamRecord
from intarsia.measure.load.generate_load import (
    Submit,
    run_chained_loop,
    run_closed_loop,
    run_open_loop,
)
from intarsia.runtime.executable import Executable
from intarsia.runtime.joined_calls import joining_complaint, run_joined
from intarsia.runtime.kernel import Array, Value
from intarsia.runtime.pool import Pool
from intarsia.runtime.stream_choice import StreamChoice
from intarsia.support.errors import IntarsiaError

ROUNDS: Final = 3
"""Rounds of each stage at saturation."""
WARM_UP_REQUESTS: Final = 4
"""Requests to each stream before it is measured."""
CLOSE: Final = 0.8
"""Share of the best rate from which on a choice is measured at the common arrival rate."""
FINALISTS: Final = 4
"""Number of choices up to which the slower half is left out, so that each has enough requests for a tail."""
UTILISATION: Final = 0.7
"""The common arrival rate, as a share of the best rate: a queue forms now and then, and empties."""
REQUESTS_PER_CLIENT: Final = 4
"""Default number of requests under way for each core."""
JOINED_TOLERANCE: Final = 1e-4
"""Largest difference of joined calls from single ones, as a share of the largest value: sums round."""


@dataclass(eq=False)
class _Contender:
    name: str
    pool: Pool
    rates: list[float]


def search_streams(
    programs: Mapping[str, Executable],
    inputs: Sequence[Value],
    options: LoadOptions,
    cores: int,
    seconds: float,
    should_stop: Callable[[], bool],
    loads: StoredLoads,
) -> tuple[StreamRecord, ...]:
    """Measure each program with each choice, and return the records: the chosen first, then by rate.

    Args:
        programs: Programs that compute the model right, by name.
        inputs: Inputs of a request, in order.
        options: Load and objective.
        cores: Number of cores.
        seconds: Time in seconds for all measurements.
        should_stop: Function that returns true to end with the measurements so far.
        loads: Measurements of earlier runs at the concurrency of this one.

    Raises:
        DatabaseError: A measurement cannot be kept.
    """
    concurrency = loads.concurrency
    with ExitStack() as closing:
        contenders, refused = _open_pools(closing, programs, inputs, options, cores, concurrency)
        finalists = _measure_rates(contenders, inputs, loads, seconds / 2, should_stop)
        rates = {contender: statistics.median(contender.rates) for contender in contenders}
        best = max((rates[item] for item in finalists), default=0.0)
        ordered = sorted(contenders, key=lambda item: (item not in finalists, -rates[item]))
        near = [item for item in finalists if rates[item] >= CLOSE * best]
        records = []
        for contender in ordered:
            load = None
            if contender in near and not should_stop():
                arrival_rate, part = UTILISATION * best, seconds / 2 / len(near)
                run = partial(run_open_loop, _submit_to(contender.pool, inputs), arrival_rate, part)
                load = loads.measure(contender.name, contender.pool.choice, part, run, arrival_rate)
            records.append(StreamRecord(contender.name, contender.pool.choice, rates[contender], load))
    return (*_with_choice(records, options.objective), *refused)


def _measure_rates(
    contenders: Sequence[_Contender],
    inputs: Sequence[Value],
    loads: StoredLoads,
    seconds: float,
    should_stop: Callable[[], bool],
) -> list[_Contender]:
    """Measure rates at saturation, leave out the slower half again and again, and return the last few.

    Rates of an earlier stage, which was shorter, are replaced.
    """
    remaining, stages = list(contenders), 1
    while len(contenders) >> (stages - 1) > FINALISTS:
        stages += 1
    for stage in range(stages):
        if stage and should_stop():
            break
        for contender in remaining:
            contender.rates.clear()
        slice_s = seconds / stages / ROUNDS / max(1, len(remaining))
        for _ in range(ROUNDS):
            for contender in remaining:
                submit = _submit_to(contender.pool, inputs)
                # Where the queue may be full, a callback that sends would hold up the stream that empties it.
                has_room = loads.concurrency <= contender.pool.most_waiting
                loop = run_chained_loop if has_room else run_closed_loop
                run = partial(loop, submit, loads.concurrency, slice_s)
                load = loads.measure(contender.name, contender.pool.choice, slice_s, run)
                contender.rates.append(load.rate)
        # By the best round: a disturbance only lowers a rate.
        remaining.sort(key=lambda item: -max(item.rates))
        if stage < stages - 1:
            remaining = remaining[: max(FINALISTS, (len(remaining) + 1) // 2)]
    return remaining[:FINALISTS]


def requests_under_way(options: LoadOptions, cores: int) -> int:
    """Return the number of requests under way at saturation."""
    return options.concurrency or REQUESTS_PER_CLIENT * cores


def stream_choices(cores: int, concurrency: int, batches: tuple[int, int]) -> Iterator[StreamChoice]:
    """Yield the choices: as many streams as fit the cores, and twice as many, of 1, 2, 4 ... threads.

    More streams than requests under way would idle. Batches are the bounds and the powers of two between.
    """
    pairs = set()
    threads = 1
    while threads <= cores:
        for streams in (cores // threads, 2 * cores // threads):
            pairs.add((min(streams, concurrency), threads))
        threads *= 2
    pairs.add((1, cores))
    low, high = batches
    sizes = {low, high, *(1 << power for power in range(high.bit_length()) if low <= 1 << power <= high)}
    for streams, count in sorted(pairs):
        for size in sorted(sizes):
            yield StreamChoice(streams, count, size)


def _open_pools(
    closing: ExitStack,
    programs: Mapping[str, Executable],
    inputs: Sequence[Value],
    options: LoadOptions,
    cores: int,
    concurrency: int,
) -> tuple[list[_Contender], list[StreamRecord]]:
    """Open a pool for every program and choice; also the records of those that cannot be."""
    contenders, refused = [], []
    for name, executable in programs.items():
        for choice in stream_choices(cores, concurrency, options.batches):
            reason = _joining_fault(executable, inputs, choice.batch)
            if not reason:
                try:
                    pool = Pool(executable, choice.streams, choice.threads, choice.batch)
                    closing.enter_context(pool)
                    requests = range(WARM_UP_REQUESTS * choice.streams)
                    for future in [pool.submit(tuple(inputs)) for _ in requests]:
                        future.result()
                    contenders.append(_Contender(name, pool, []))
                    continue
                except IntarsiaError as error:
                    reason = error.problem
            refused.append(StreamRecord(name, choice, 0.0, reason=reason))
    return contenders, refused


def _joining_fault(executable: Executable, inputs: Sequence[Value], batch: int) -> str:
    """Return why calls cannot be joined to a batch, or the empty string; results are compared."""
    if batch == 1:
        return ""
    if complaint := joining_complaint(executable.plan):
        return complaint
    items = max(1, batch // len(_array(inputs[0])))
    # Different items: a program that mixes them would return equal ones right by chance.
    calls = [[np.roll(value, number, axis=-1) for value in map(_array, inputs)] for number in range(items)]
    try:
        joined = run_joined(executable.run_flat, calls)
    except (IntarsiaError, ValueError) as error:
        return str(error).splitlines()[0]
    for call, results in zip(calls, joined, strict=True):
        for single, result in zip(map(_array, executable.run_flat(*call)), map(_array, results), strict=True):
            if not is_close(single, result):
                return "joined calls give other results: its items depend on one another"
    return ""


def is_close(single: Array, joined: Array) -> bool:
    """Return whether a result of joined calls is that of a single one, but for rounding."""
    expected, actual = single.astype(np.float64), joined.astype(np.float64)
    scale = float(np.max(np.abs(expected), initial=0.0)) or 1.0
    return expected.shape == actual.shape and np.allclose(
        expected, actual, rtol=0, atol=JOINED_TOLERANCE * scale, equal_nan=True
    )


def _array(value: Value) -> Array:
    assert isinstance(value, np.ndarray), "joining_complaint lets only tensors through"
    return value


def _submit_to(pool: Pool, inputs: Sequence[Value]) -> Submit:
    given = tuple(inputs)
    return lambda _: pool.submit(given)


def _with_choice(records: Sequence[StreamRecord], objective: Objective) -> list[StreamRecord]:
    """Return the records with the best one marked and in front."""
    measured = [record for record in records if record.load is not None] or list(records[:1])
    if not measured:
        return []
    if objective is Objective.P99:
        best = min(measured, key=lambda record: record.load.p99 if record.load else float("inf"))
    else:
        best = max(measured, key=lambda record: record.rate)
    others = [record for record in records if record is not best]
    return [replace(best, chosen=True), *others]
