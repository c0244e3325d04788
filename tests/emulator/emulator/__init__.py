"""An AWS stand-in for tests: moto, held to what AWS refuses, delays and forgets.

The package starts moto inside its own process, attaches rules to moto's actions (`rules/`) and wraps the
whole in an HTTP server with a call log, faults and a control API. It never talks to AWS.
"""
