"""The parts of ``sparkyard.load``: YAML with lines, Ansible's inventory rules, recipes, settings. Private to it."""
