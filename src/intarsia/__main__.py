"""`python -m intarsia` is `intarsia`."""

from intarsia.cli import main

if __name__ == "__main__":
    main()
