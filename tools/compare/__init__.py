"""Two sides of training or serving runs, from their logs: aligned, judged against limits, and one decision.

`rows` and `tensorboard` read what loggers write, `log` holds it, `runs` finds the logs of one side. `align` puts both sides on one axis, `noise` says how
much runs of one side differ by themselves, `training` and `serving` compare one metric, and `compare` decides over all of them.
"""
