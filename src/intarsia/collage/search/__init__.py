"""The covering problem in the abstract: which pieces, together, run every node once, at the least cost.

Bit masks and seconds; nothing of programs or toolchains. `search` finds the cheapest covers, exactly up to a
budget and with a proven gap beyond; `lazy_search` measures only what can still matter.
"""

from intarsia.collage.search.cover import Cover, cost_of, faults_of
from intarsia.collage.search.cover_problem import CoverProblem, Parameter
from intarsia.collage.search.cover_search import CoverSearch, search
from intarsia.collage.search.lazy_search import LazyResult, Measure, lazy_search
from intarsia.collage.search.piece import INVALID, Piece
from intarsia.collage.search.search_result import Infeasible, SearchOptions, SearchResult
from intarsia.collage.search.transition import Transition

__all__ = [
    "INVALID",
    "Cover",
    "CoverProblem",
    "CoverSearch",
    "Infeasible",
    "LazyResult",
    "Measure",
    "Parameter",
    "Piece",
    "SearchOptions",
    "SearchResult",
    "Transition",
    "cost_of",
    "faults_of",
    "lazy_search",
    "search",
]
