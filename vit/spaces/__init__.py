"""Hugging Face Spaces, where the page can be hosted."""
