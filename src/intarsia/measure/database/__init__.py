"""Store measurements permanently, so that a candidate is not measured again, even after a crash.

    with Database.open("measurements.db") as database:        # or postgresql://user@server/name
        database.commit(MeasureRecord.of(measure_input, host.digest, result))
        database.best(workload.digest, target, host.digest)

record          a candidate with all its measurements, and a hint, which has no cost
run_record      a finished tuning run
answers         results of statistics, merges and exports
place           a path or URL -> the location of a database
connections     transactions on it
failure         errors of SQLite and PostgreSQL -> DatabaseError
tables, schema  the tables; their version and migrations
rows            records <-> rows of the tables
leases          what a tuner measures at the moment
commits, queries, runs, garbage, summaries, descriptions, json_lines
                operations within a transaction
database        the public class

Decided here:
* The key of a record is (workload digest, target's text, host digest, candidate digest). A search reaches
  records of other hosts by `hints` only, and a hint has no cost.
* A second measurement of the same adds to the first (`MeasureRecord`): repeats are pooled, the newest verdict
  counts. To combine is commutative, associative and idempotent, so that merging databases in any order and
  any number of times gives the same.
* SQLite runs with a write-ahead log and `synchronous=NORMAL`. Once `commit` has returned, the death of the
  process (kill -9) loses nothing; only when the whole machine loses power may the last few commits be
  missing, and even then the database is consistent. `FULL` would wait for the disk at every commit.
* A finished run is stored as well, by a digest of its request, so that the same request is answered without
  a search. It can be made again from the measurements, so exports and merges leave it out.
* SQLAlchemy is loaded when a database is opened, not before.
"""

from typing import TYPE_CHECKING

from intarsia.measure.database.answers import (
    LineCounts,
    MergeCounts,
    RemovedCounts,
    Statistics,
    WorkloadSummary,
)
from intarsia.measure.database.record import Hint, Measurement, MeasureRecord
from intarsia.measure.database.run_record import ModelRecord, RunRecord
from intarsia.support.lazy_names import lazy_names

if TYPE_CHECKING:
    from intarsia.measure.database.database import Database

__all__ = [
    "Database",
    "Hint",
    "LineCounts",
    "MeasureRecord",
    "Measurement",
    "MergeCounts",
    "ModelRecord",
    "RemovedCounts",
    "RunRecord",
    "Statistics",
    "WorkloadSummary",
]

__getattr__, __dir__ = lazy_names(globals(), {"Database": "intarsia.measure.database.database"})
