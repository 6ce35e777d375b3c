"""Evaluators: models that read leads."""
