"""Agenton: reusable layers, composed into the prompts and tools of an agent whose session can pause.

An agent loop that also writes its prompts, gathers its tools and remembers its
session can be neither reused nor restarted.  Here those belong to *layers*, and
a *compositor* arranges layers in a graph.  The compositor holds no live thing:
every `enter` makes fresh layers, and a pause leaves only JSON behind.

Read in this order: `layers/` lifecycle, schemas, inference, base, types; then
`compositor/` schemas, noting, providers, graph, contributions, run, restore,
core; `collections/` holds layers ready to use.  The guide is docs/agenton.md.
"""
