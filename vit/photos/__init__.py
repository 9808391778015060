"""From the file of a photo to what the model sees of it."""
