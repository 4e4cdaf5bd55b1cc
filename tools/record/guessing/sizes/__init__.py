"""Sizes of inputs and of constructors: what code asks for, what layers leave, and fewer or more where a call takes long or says little."""
