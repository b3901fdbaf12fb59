"""Real processes that are really killed: nothing that was kept may be lost, nothing that returned done twice.

`errand` is the plan whose run is killed, `child` the life of one process, `nursery` where
processes come from, `story` what becomes of a run over many lives, and what must hold after each.
The tests kill at every write; `python -m tests.soak` kills at random moments, hundreds of times.
"""
