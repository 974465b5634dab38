"""The drivers: all I/O of a member (sockets, clocks, files), in thin modules."""
