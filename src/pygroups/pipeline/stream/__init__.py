"""The audit as a stream: promises judged over journals that still grow, with the rules of the audit.

`docs/guides/stream.md` is for its users.  A batch of Spark's Structured Streaming is some ranges of bytes of journals:

1. `ingest` appends their records to a table of the records that are still needed (`state.py`).
2. `views.py` says which views are closed: no journal that can still grow will have a record in them.
3. `judging.py` calls the rules: some on the new records, some on the views that this batch has closed.
4. `outputs.py` writes violations, verdicts and measures under the number of the batch, so that a batch that is repeated
   after a kill replaces what it had written.
5. `prune.py` leaves the records of closed views out of the table.
"""
