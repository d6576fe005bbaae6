"""Models: encoder → latent space → decoder."""
