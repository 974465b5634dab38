"""The journal: the log of its own events that a member writes for the audit. `docs/journal.md` has the format."""
