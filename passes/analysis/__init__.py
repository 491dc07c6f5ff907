"""Questions about the IR shared by several passes."""
