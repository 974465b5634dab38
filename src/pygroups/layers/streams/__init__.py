"""The numbered streams of a view, for a layer that numbers multicasts.  Note: docs/layers/streams.md."""
