"""Transformers into the terms of an agent library: `pydantic_ai` needs the pydantic-ai extra."""
