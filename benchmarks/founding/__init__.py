"""The founding article, recomputed: its claims as intervals, held against the product's own answers.

`claims` says what was claimed and how it is read, `answers` asks the product, `report` holds the one against the other,
`tables` looks at the measured rows alone, and `page` writes docs/article.md.
"""
