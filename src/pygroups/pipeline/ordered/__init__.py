"""The totally ordered messages of groups, each once, from the archives of any of their members."""
