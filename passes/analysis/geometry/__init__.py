"""Where the tiles of a kernel lie, which cells they hold, and how columns of tiles are cut into chunks."""
