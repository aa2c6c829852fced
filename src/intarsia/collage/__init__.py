"""Collage: which toolchain runs which sub-graph (seed collage_rfc, DESIGN section 7).

graph               a function as a graph (phase 1)
sub_graph           sets of nodes that can become a function; cutting them out, and rewriting with many
candidates, rules   candidates for a target, and the partition rules that propose them
gather_specs        what the targets propose (prune, planned_devices: which of it is kept)
costs               what candidates and borders between them cost
search              the covering problem in the abstract: bit masks and numbers
cover_of_graph      a function's candidates as a covering problem
function_search     the cheapest covers of a function (function_cover, no_cover)
collage             of a module; conflicts says which toolchains must not occur together
placement           what is chosen, as plain data and as a file
evolution           the second level: placements by what the whole program takes
rivals              what other covers would have cost
search_by_measured_sums
                    placements by sums of what their parts and borders take, measured here
collage_partition   all of it as a pass
tune_placement      all of it as a tuning pass; placement_search compares whole programs, end to end

Nothing is imported here, so that the search can be used without the language.
"""
