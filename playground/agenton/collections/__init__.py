"""Layers and transformers ready to use; `pydantic_ai` ones need the extra of that name."""
