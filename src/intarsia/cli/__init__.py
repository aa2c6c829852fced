"""The command line: the only place that prints or reads the environment (DESIGN sections 11 and 12).

app          the commands and the flags that all of them share
commands     one module for each command: arguments -> Report; a command prints nothing itself
arguments    what the user writes -> values, with errors that show how to write it; completion for the shell
reports      results of commands as JSON documents, and as texts and tables for people
console      the streams: results on stdout; progress, notes and errors on stderr; Ctrl-C
exit         outcomes and signals -> messages and exit codes
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
