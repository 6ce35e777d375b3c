"""Runs: plans, stages, receipts, bundles and results."""
