"""What reads leads."""
