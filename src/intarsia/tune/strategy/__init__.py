"""Search strategies over combinations of decisions, with one interface.

trials                           the search space, and the costs of tried points
strategy                         the interface
exhaustive                       all points
random_search, evolutionary,     anytime (K1): better the longer they run
simulated_annealing
effects                          a model of costs, measured
beam, integer_program,           run to their end (K2)
greedy, prefixes
"""

from intarsia.tune.strategy.beam import Beam
from intarsia.tune.strategy.evolutionary import EvolutionarySearch
from intarsia.tune.strategy.exhaustive import Exhaustive
from intarsia.tune.strategy.greedy import Greedy
from intarsia.tune.strategy.integer_program import IntegerProgram
from intarsia.tune.strategy.prefixes import Prefixes
from intarsia.tune.strategy.random_search import RandomSearch
from intarsia.tune.strategy.simulated_annealing import SimulatedAnnealing
from intarsia.tune.strategy.strategy import Strategy
from intarsia.tune.strategy.trials import Cost, Point, SearchLimits, Trials

__all__ = [
    "Beam",
    "Cost",
    "EvolutionarySearch",
    "Exhaustive",
    "Greedy",
    "IntegerProgram",
    "Point",
    "Prefixes",
    "RandomSearch",
    "SearchLimits",
    "SimulatedAnnealing",
    "Strategy",
    "Trials",
]
