"""The version of this software; pyproject.toml reads it from here."""

VERSION = "0.1.0"
