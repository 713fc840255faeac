"""Authorization endpoint: a request is checked, the person asked for consent, the app given a
code.
"""
