"""Findings: what follows from the results of a run, computed from its tables, without any presentation."""
