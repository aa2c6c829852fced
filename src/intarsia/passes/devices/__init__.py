"""What device planning is made of (reference part C.3; the passes are PlanDevices and PlanDevicesLite).

device_domains          union-find of what lies on one device; function values have a domain for each argument
device_flow             the domain of each value, and the needs for values in domains
flow_builder            the flow of a program, rule by rule
operator_bodies         what stands in the body of an operator is where the operator is
indivisible_functions   functions that are compiled on their own lie on one device
device_choice           which devices each domain can take, and what is fixed
min_copies              the choice with the fewest copies
upward_choice           the choice that follows the arguments
max_flow                smallest cuts
capture                 devices on every expression, copies where they differ
device_config           the targets that planning distinguishes
consistency             what a planned program must be like
"""
