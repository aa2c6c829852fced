"""Functions inside programs: what they capture, who calls them, putting them in place and taking them out."""
