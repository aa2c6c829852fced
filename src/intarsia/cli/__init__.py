"""The command line: the only place that prints or reads the environment (DESIGN sections 11 and 12).

app          the commands and the flags that all of them share
commands     one module for each command, from arguments to a Report; a command prints nothing itself
arguments    parsing of arguments, with errors that show the right form; shell completion
reports      results of commands as JSON documents, and as texts and tables
console      the streams: results on stdout; progress, notes and errors on stderr; Ctrl-C
exit         messages and exit codes for outcomes and signals
"""

from __future__ import annotations


def main() -> None:
    """Run the command line of this process and end the process with its exit code."""
    import sys

    try:
        from intarsia.cli.exit import run_command_line
    except KeyboardInterrupt:  # Ctrl-C during the imports, before signal handlers are installed
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    sys.exit(run_command_line(sys.argv[1:], sys.stdout, sys.stderr))
