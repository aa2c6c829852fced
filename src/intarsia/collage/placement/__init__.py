"""What is chosen: partitions of a program that can be carried out, kept and carried out again.

placement        which nodes go where, as plain data
partitioned      a placement as a transformation
plan             a placement in a file, with what it was found by
program_facts    whether a plan is for a program
"""
