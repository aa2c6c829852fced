"""Search for schedules of native kernels (seed ansor_minimum): sketches, population, cost model, scheduler.

task         what is searched: a DAG on hardware; names of workloads
sketch       rules that give the structure of loops, without sizes
population   rules that draw sizes and annotations for a sketch
mutation     small changes of a state
features     what a cost model sees of a loop function
cost_model   scores of states without measuring
scheduler    which task gets the next round
"""
