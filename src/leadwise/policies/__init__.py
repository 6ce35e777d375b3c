"""Policies: they choose leads."""
