"""Configuration: the keys, their types and limits, and the sources that set them."""
