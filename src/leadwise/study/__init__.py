"""The whole: from a cohort to a report."""
