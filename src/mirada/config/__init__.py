"""Options: what they are, the kinds of numbers they hold, and YAML files of them."""
