"""An HTTP service over loaded models, and the page on which attention is watched as it happens."""
