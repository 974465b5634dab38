"""All that touches the world: sockets, clocks, files; kept thin."""
