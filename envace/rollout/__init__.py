"""The act–rehearse loop: one implementation for training, test-time rehearsal and evaluation."""
