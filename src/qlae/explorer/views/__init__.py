"""How the explorer shows each kind of observations, and how it reads what users upload."""
