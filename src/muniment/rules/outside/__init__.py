"""What rules ask of the outside: pictures drawn by matplotlib."""
