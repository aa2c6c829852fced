"""Tables and lines that commands print, as text and as JSON."""
