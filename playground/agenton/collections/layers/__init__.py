"""Layers ready to use: `plain` needs nothing, `pydantic_ai` needs the pydantic-ai extra."""
