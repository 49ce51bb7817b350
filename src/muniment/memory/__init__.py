"""What is remembered of a user: facts, procedures, insights, episodes, documents; how it is extracted and recalled."""
