"""Does a profile hold what protects its user and what they asked for lastingly?"""
