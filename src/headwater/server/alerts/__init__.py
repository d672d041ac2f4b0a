"""Alerts: rules of a file, judged over the store; one message when an incident opens, one when it is over.

`rules` reads the file, `rules_reload` reads it again when it changes. `conditions` finds what is wrong, with one
file a kind (`troubles`, `quality_checks`, `schema_breaks`, `new_readers`), all over one `evaluation`; `jobs` and
`labels` are what they read.
`incidents` keeps what is open and what is to be sent, `messages` and `channels` send it, and `watch`
is the loop of the server that leads.
"""
