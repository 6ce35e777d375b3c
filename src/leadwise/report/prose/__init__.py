"""Sentences of a report: its summary and its methods."""
