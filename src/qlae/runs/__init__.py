"""The run directory: its files, its model, the folder in which a model is shared, and the names that users choose."""
