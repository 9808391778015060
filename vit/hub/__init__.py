"""The Hugging Face Hub: fetching and uploading with its own client, and its errors as sentences."""

from .download import quiet_hub
from .errors import HubError

__all__ = ["HubError", "quiet_hub"]
