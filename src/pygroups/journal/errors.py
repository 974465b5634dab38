"""The error of a journal, for those that use one without the writer."""


class JournalError(OSError):
    """The journal cannot be opened or written. The message has the file and the reason."""
