"""What two or more of the root programs share. Nothing in here imports a root program."""
