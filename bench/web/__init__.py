"""What a viewer costs: many streams of one run, beside a bare socket server that does the least."""
