"""The promises as checks that run while a schedule runs."""
