"""The lab's stand-in for Ignition: ranks that really meet, a package that really lies there, and no model in it."""
