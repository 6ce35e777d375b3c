"""What a report says in sentences: what was found, and how the study was done."""
