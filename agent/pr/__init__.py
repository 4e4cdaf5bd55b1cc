"""Pull requests: verified units as a stack of branches and requests on a forge, and the same again without doing anything twice.

```
run folder ──run.verified──▶ [Change] ──stack──▶ chains of [Piece] ──build──▶ commits ──plan (pure)──▶ [Action] ──act──▶ remote and forge
                        remote branches, requests ────────────────┘                 ▲
                                                            forge state ────────────┘
```
"""
