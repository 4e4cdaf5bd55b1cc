"""What names of the original stand for."""
