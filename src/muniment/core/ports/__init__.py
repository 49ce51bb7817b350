"""What the rooms and the runtime ask of the outside world: protocols and the values that cross them."""
