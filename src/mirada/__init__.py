"""mirada."""
