"""Was every line run and compared?"""
