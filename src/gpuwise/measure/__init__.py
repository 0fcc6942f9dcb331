"""What a job is and does, found on the machine at hand. `count` needs no accelerator."""
