"""A report as data, and its four forms: one HTML file that needs no network, Markdown, CSV and JSON."""
