"""Who is studied."""
