"""The pages and the HTTP API over `playground.sessions`; no engine logic lives here."""
