"""The world that plays a schedule: processes, the network between them, the directory, virtual time, and the faults."""
