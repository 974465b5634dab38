"""The figures of the report: functions from plain values to SVG."""
