"""The embedded lab: a real streaming stack on one machine, without containers."""
