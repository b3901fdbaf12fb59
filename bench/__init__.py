"""Runnable comparisons with peers; see README.md."""
