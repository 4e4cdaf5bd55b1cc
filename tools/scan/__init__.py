"""Scan and plan: the files and module classes of a repository, their strategies, and the order of work. Reads syntax only.

`walk` lists the files. `layout` gives their module names and the places of their mirrors. `facts` reads
one file and `survey` all of them. `exports` and `names` resolve names (the recorder and the rewriter
use them too). `graph` says which definition uses which. `detectors` is the table of code that is no
model maths; `strategy` and `findings` apply it. `inventory` assembles the result, and `plan` orders it.
"""

from migrate_agent.tools.scan.inventory import scan
from migrate_agent.tools.scan.plan import UnknownUnit, plan

__all__ = ["UnknownUnit", "plan", "scan"]
