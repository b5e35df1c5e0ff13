"""One executor for each kind of action. Only the engine calls them."""
