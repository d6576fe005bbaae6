"""The run directory: its files, its model, the folder that hands a model on, and names that people give."""
