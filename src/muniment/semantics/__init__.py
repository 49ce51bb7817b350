"""What words of the contracts mean, in one function each, so that every room reads them the same way."""
