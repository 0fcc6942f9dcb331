"""Own or rent, how much to own, and when to leave the cloud: values in, values out."""
