"""What turns a rollout into a reward."""
