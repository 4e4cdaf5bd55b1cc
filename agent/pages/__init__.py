"""Self-contained HTML pages: one file that opens without a network, light or dark as the reader's machine is."""
