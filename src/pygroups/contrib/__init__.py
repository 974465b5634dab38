"""pygroups in frameworks that people already use: one file for each, which needs the extra of the same name."""
