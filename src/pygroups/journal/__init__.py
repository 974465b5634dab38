"""The journal: what a member writes down of everything it saw. `docs/journal.md` describes the format."""
