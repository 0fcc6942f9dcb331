"""The founding claim that a public cloud costs two to three times as much as one's own servers: when it holds."""
