"""Cohorts: the records that are studied."""
