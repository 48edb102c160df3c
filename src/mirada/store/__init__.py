"""Model folders and resumable states on disk: safetensors, JSON and YAML, no pickle."""
