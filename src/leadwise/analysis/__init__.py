"""Analyses: contrasts, interactions and what explains them, with their intervals."""
