"""For people: what a run found, beside what was published."""
