"""Further calls: what reaches code that the examples of a unit do not."""
