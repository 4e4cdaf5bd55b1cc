"""What is decided once the draft of a program is composed."""
