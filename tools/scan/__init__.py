"""Scan and plan: what a repository holds, what must be rewritten and how, and in which order. Reads syntax only; nothing is run.

`walk` lists the files, `layout` says what they are imported as and where their mirrors go, `facts` reads one file, `survey` all of them,
`exports` and `names` say what names mean (for the recorder and the rewriter too), `graph` which definition uses which, `detectors` is the
table of what is no model maths, `strategy` and `findings` judge, `inventory` puts it together, `plan` orders.
"""

from migrate_agent.tools.scan.inventory import scan
from migrate_agent.tools.scan.plan import UnknownUnit, plan

__all__ = ["UnknownUnit", "plan", "scan"]
