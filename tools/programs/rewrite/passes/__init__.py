"""Passes that bring a script into its plain form, from torch to torch, before its steps are taken out."""
