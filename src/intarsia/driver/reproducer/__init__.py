"""Programs that make a pass fail: found, written into a folder, replayed and reduced.

pass_failure   what can be wrong with what a pass does, and the check for it
limited_call   a call in a process of its own, with a limit on its time
find_failure   the first pass of a sequence that fails
folder         a program, a pipeline, settings and versions in a folder
reduce         the same failure on a smaller program
"""
