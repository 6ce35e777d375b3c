"""What it shows."""
