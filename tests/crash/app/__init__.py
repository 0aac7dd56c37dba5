"""The site's own app: handlers that keep the ledger, and a table for the effects of one of them."""
