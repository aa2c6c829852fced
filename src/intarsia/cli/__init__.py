"""The command line: the only place that prints or reads the environment (DESIGN sections 11 and 12).

app                     the commands and the flags that all of them share
doctor, tune, run, bench, compare, verify, zoo, db, sign
                        one command each: arguments -> Report; nothing is printed there
report, table           what a command found: a JSON document, and texts and tables for people
console, progress       the streams: results on stdout; progress, notes and errors on stderr
exit, interruption      outcomes and signals -> messages and exit codes
model_argument, target_argument, shape_argument, input_argument, age_argument, random_rest, output_argument,
database_place, trust_argument
                        what the user writes -> values, with an error that shows how to write it
program                 a model or an artifact, compiled and ready to call
units, array_summary    numbers and arrays for people
completion, bash_words  names for the shell
"""

from __future__ import annotations


def main() -> None:
    """Run the command line of this process and end the process with its exit code."""
    import sys

    try:
        from intarsia.cli.exit import run_command_line
    except KeyboardInterrupt:  # before the signals are taken care of
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    sys.exit(run_command_line(sys.argv[1:], sys.stdout, sys.stderr))
