"""What decides about lessons: who gets one, what came of it, whether its world has changed, where it stands next."""
