"""What the results of a run say: computed from its tables, without any presentation."""
