"""The product in a browser: the same questions, forms made from the request types, each answer as page and document.

`app.create_app` makes the application, `serving.serve` runs it. The server itself only speaks HTTP; questions are
answered in worker processes (`workers`), which can be ended when nobody waits for them any more.
"""
