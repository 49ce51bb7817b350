"""The policy: one document of numbers and switches, a section for each room, with one hash that a build refers to."""
