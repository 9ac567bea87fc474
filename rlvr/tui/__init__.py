"""What the terminal programs show: series and figures from records, widgets on top of them, one table of keys.

`series`, `rows`, `figure` and `frame` know no Textual, so that a frame can be printed without it; the rest is widgets.
Nothing in here starts a run or writes into one, but for the pictures that a user asks for.
"""
