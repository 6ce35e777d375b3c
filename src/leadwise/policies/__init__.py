"""What chooses leads."""
