"""Results in words: each verb's result becomes a `Page` of blocks, which `render` writes as text, HTML or Markdown."""
