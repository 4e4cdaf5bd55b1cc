"""What a migration of a repository comes to, before it begins.

`calibration` holds what first looks at other repositories needed, `risks` finds lines that are hard to move, `phases` is the order of work, and
`assessment` puts them together over an inventory. It reads text, and runs nothing.
"""
