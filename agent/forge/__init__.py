"""Where requests are opened: GitHub and GitLab behind one protocol (`base.Forge`), and which of them a git remote is (`remote`)."""
