"""Finds in which range values lie whatever a source is called with."""
