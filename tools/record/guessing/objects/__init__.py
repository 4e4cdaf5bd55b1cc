"""Texts of objects that a constructor takes: of the repository's classes, and of classes that are known by name."""
