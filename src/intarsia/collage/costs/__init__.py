"""What candidates cost, and what borders between them cost.

cost_estimator             the protocol, and those that are registered by name
measured_cost_estimator    by measuring each candidate as a program of its own
measured_costs             the same, with a testbed of its own
captured_values            what the program's own values are, to measure and to check parts with
boundary_costs             dispatch and transitions; measure_boundaries measures them
lower_bounds, work_shares  what a candidate costs at least, by its work
final_costs, shrinkage     what covers are compared by: costs shrunk by their uncertainty
"""
