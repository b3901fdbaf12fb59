"""The web: one Starlette app with pages, streams and a JSON API.  No engine logic here."""
